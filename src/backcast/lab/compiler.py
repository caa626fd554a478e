"""A process that compiles the kernels of a scene into the cache: `python -m backcast.lab.compiler open`.

It reads the scene from its input, with the modules that registered its kinds, and prints its progress at intervals. It
ends when its input ends, because the lab that started it is then gone.
"""

import json
import os
import sys
import threading

import numpy as np

_BEHIND = 5  # niceness: the lab itself, and agents interpreted in the meantime, come first


def main() -> None:
    """Compile for one scene."""
    if hasattr(os, "nice"):
        os.nice(_BEHIND)
    told = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_lab, daemon=True).start()
    from backcast.core.waiting import listening
    from backcast.lab.config import read_config
    from backcast.lab.further_seeds import begin_runs
    from backcast.lab.scene import Scene
    from backcast.lab.scene_opening import warmed_up
    from backcast.studies.plugins import import_plugins

    import_plugins(told["plugins"])
    work = {"open": warmed_up, "further": begin_runs}[sys.argv[1]]
    with listening(lambda compilation: print(compilation, flush=True)):
        work(Scene(read_config(told["config"])), np.zeros(1, dtype=np.uint8))
    os._exit(0)  # the other thread waits for the input, and cannot be stopped


def _end_with_the_lab() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
