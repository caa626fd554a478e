"""The configuration of JAX: the check that it is installed, a cache of compiled programs, and 64-bit numbers.

Programs are traced with 64-bit types, because the streams of random numbers are those of all other agents
(`backcast.core.randomness`). Networks have the precision of the agent's setting. 64-bit types are enabled for
Backcast's own programs only, not for the rest of the process.
"""

import contextlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator

from backcast.core.errors import InputError

_lock, _prepared = threading.Lock(), False


def require_jax() -> None:
    """Raise InputError unless the extra is installed; on the first call, configure compilation and its cache."""
    global _prepared
    missing = [name for name in ("jax", "optax", "equinox") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"network: {' and '.join(missing)} missing; agents with a network need pip install 'backcast[neural]'"
        )
    with _lock:
        if not _prepared:
            _prepare()
            _prepared = True


def _prepare() -> None:
    """Use one thread for small matrices, because seeds have their own threads; run programs in the calling thread."""
    if "jax" not in sys.modules:
        flags = os.environ.get("XLA_FLAGS", "")
        if "xla_cpu_multi_thread_eigen" not in flags:
            os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    import jax

    from backcast.core.kernel_directory import cache_directory, is_used, prepare_directory

    with contextlib.suppress(AttributeError):  # an option that a later JAX may not have
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    if jax.config.jax_compilation_cache_dir is None and is_used():
        prepare_directory()
        jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@contextlib.contextmanager
def wide() -> Iterator[None]:
    """Enable 64-bit types within the context."""
    import jax

    with jax.enable_x64(True):
        yield
