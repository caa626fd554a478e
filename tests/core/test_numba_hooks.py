"""What Backcast takes from Numba's insides may be missing tomorrow: kernels then compile, without the cache."""

import os
import subprocess
import sys

import pytest

KERNEL = """
import numpy as np
from backcast.core.compiling import cache_trouble
from backcast.core.randomness import pick
print(pick(np.array([0.5, 1.0]), 0, 2, 0.7), pick(np.array([1.0], dtype=np.float32), 0, 1, 0.2))
print(cache_trouble())
"""
AGENT = """
import backcast as bc
runs = bc.run(bc.worlds.chain((4, 2), seed=0), bc.agent("td"), 20, 1)
print(runs.values[0, :4].tolist())
"""
INSIDES = """
import contextlib, importlib, sys
import numba.core.ccallback, numba.core.codegen, numba.core.options
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

@contextlib.contextmanager
def hidden(module, name):
    module = importlib.import_module(module)
    kept = getattr(module, name)
    delattr(module, name)
    yield
    setattr(module, name, kept)

def keep_elsewhere(function):
    names = tuple("_kept" if name == "_cache" else name for name in function.__code__.co_names)
    function.__code__ = function.__code__.replace(co_names=names)
"""
CHANGES = {  # in Numba, before Backcast is imported; and of what it is then said that it is missing
    "del numba.core.caching.NullCache": "NullCache",
    "sys.modules['numba.core.caching'] = None": "numba.core.caching",
    "NullCache.load_overload = lambda self, sig, target_context, how=None: None": "NullCache.load_overload takes",
    "with hidden('numba.core.compiler', 'compile_result'): import backcast.core.compiling": "compile_result",
    "numba.core.codegen.CPUCodeLibrary._get_compiled_object = lambda self, how: None": "'how'",
    "del numba.core.codegen.CPUCodegen.magic_tuple": "magic_tuple",
    "keep_elsewhere(Dispatcher.__init__); keep_elsewhere(Dispatcher.compile)": "_cache",
}


def run(code, tmp_path, *, interpreted=False):
    """What this code prints and what it says on stderr, with a cache of its own."""
    environment = {**os.environ, "BACKCAST_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": str(int(interpreted))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.parametrize(
    "change", [pytest.param(change, marks=[pytest.mark.slow] * (n % 3 > 0)) for n, change in enumerate(CHANGES)]
)
def test_kernels_compile_without_the_cache_where_numba_has_changed(change, tmp_path):
    (results, trouble), said = run(INSIDES + change + KERNEL, tmp_path)
    assert results == "1 0"
    assert trouble.startswith("Numba ")
    assert CHANGES[change] in trouble
    (line,) = said
    assert line.startswith(f"backcast: the cache {tmp_path}")
    assert line.endswith(f" is not used: {trouble}")
    assert not list(tmp_path.rglob("*.nbc"))


def test_loading_that_takes_other_arguments_gives_the_cache_up(tmp_path):
    assert run(KERNEL, tmp_path) == (["1 0", ""], [])
    change = "numba.core.codegen.CPUCodeLibrary._set_compiled_object = lambda self: None"
    (results, trouble), said = run(INSIDES + change + KERNEL, tmp_path)
    assert results == "1 0"
    assert "positional argument" in trouble
    assert len(said) == 1


@pytest.mark.slow
def test_an_agent_runs_where_numba_has_changed(tmp_path):
    """Neither the cache nor the option that kernels count no references; the numbers are those of plain Python."""
    change = "del numba.core.codegen.CPUCodegen.magic_tuple; del numba.core.options.DefaultOptions._nrt"
    compiled, said = run(INSIDES + change + AGENT, tmp_path)
    assert len(said) == 1
    assert (compiled, []) == run(AGENT, tmp_path, interpreted=True)


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        pytest.param("'numba.core.typed_passes', 'NativeLowering'", AGENT, marks=pytest.mark.slow),
        ("'numba.core.compiler_machinery', 'register_pass'", KERNEL),
    ],
    ids=["an agent", "a kernel"],
)
def test_what_runs_where_kernels_cannot_be_lowered_apart(missing, code, tmp_path):
    """Each is then compiled as Numba compiles any function: the numbers are the same."""
    change = f"with hidden({missing}): from backcast.core.compiling import _WHOLE\nprint(_WHOLE)\n"
    (without, *compiled), said = run(INSIDES + change + code, tmp_path)
    assert (without, said) == ("{}", [])
    assert (compiled, []) == run(code, tmp_path, interpreted=True)


CLOSURE = """
from backcast.core.compiling import kernel

@kernel
def twice(x):
    def half(y):
        return 0.5 * y
    return 4.0 * half(x)

print(twice(3.0))
"""


def test_kernels_of_others_may_use_what_ours_never_do(tmp_path):
    module = tmp_path / "theirs.py"
    module.write_text(CLOSURE)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import theirs"
    assert run(code, tmp_path / "cache") == (["6.0"], [])
