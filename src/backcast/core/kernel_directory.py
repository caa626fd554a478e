"""The directory of compiled code: its path, and whether it may be used.

The files are machine code for this user only, as in any compiler cache: they are read only if no other user can have
written them, from a directory that no other user may write.
"""

import functools
import os
import shutil
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

import llvmlite
import numba

from backcast.core.files import is_private, remove_remains

_PACKAGE = Path(__file__).parents[1]
_KEPT_VERSIONS = 3  # most versions of Python and Numba that are kept
_KEPT_KERNELS = 2_000  # about 100 MB; the least recently used are removed
_changes: list[str] = []  # changes in Numba found by this process


@functools.cache
def cache_directory() -> Path:
    """BACKCAST_CACHE_DIR or the user's cache directory; below it a directory for this Python and this Numba."""
    base = Path(os.environ.get("BACKCAST_CACHE_DIR") or _users_caches() / _PACKAGE.name)
    return base / f"kernels-{sys.implementation.cache_tag}-numba-{numba.__version__}-llvmlite-{llvmlite.__version__}"


def _users_caches() -> Path:
    """The user's cache directory."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cache_trouble() -> str:
    """Why the cache directory is not used, and what to do; empty if it is used or does not exist yet.

    A user who may write a parent directory could replace it, but not with files owned by this user.
    """
    if _changes:
        return _changes[0]
    try:
        found = cache_directory().lstat()
    except OSError:
        return ""
    advice = "remove it, or set BACKCAST_CACHE_DIR to a directory of your own"
    if stat.S_ISLNK(found.st_mode):
        return f"it is a symbolic link; {advice}"
    if not is_private(found):
        return f"another user owns it or may write to it; {advice}"
    return ""


def is_used() -> bool:
    """Whether the cache can be used; otherwise print the reason, once."""
    return not _changes and _is_safe()


def give_up(error: Exception) -> None:
    """Disable the cache after an error that shows unexpected Numba internals; print the reason, once."""
    if not _changes:
        _changes.append(f"Numba {numba.__version__} lacks what it needs ({error}), so that every process compiles")
        _say(_changes[0])


@functools.cache
def _is_safe() -> bool:
    trouble = cache_trouble()
    if trouble:
        _say(trouble)
    return not trouble


def _say(trouble: str) -> None:
    print(f"backcast: the cache {cache_directory()} is not used: {trouble}", file=sys.stderr, flush=True)


@functools.cache
def prepare_directory() -> None:
    """Create the cache directory, or remove unfinished files of killed processes from it."""
    current = cache_directory()
    if current.exists():
        remove_remains(current)
        for old in _latest_first(current.glob("*.nbc"))[_KEPT_KERNELS:]:
            old.unlink(missing_ok=True)
        return
    current.mkdir(parents=True, exist_ok=True, mode=0o700)
    mine = [path for path in current.parent.glob("kernels-*") if is_private(path.lstat())]
    for version in _latest_first(mine)[_KEPT_VERSIONS:]:
        shutil.rmtree(version, ignore_errors=True)


def _latest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.lstat().st_mtime, reverse=True)
