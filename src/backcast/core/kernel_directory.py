"""The directory that keeps compiled code for the next process: where it is, and whether it may be used.

It is named after the sources of the packages that may hold kernels, so that an edit never runs stale code. The files
are machine code for this user alone, like any compiler's cache: they are read only if nobody else can have written
them, from a directory in which nobody else may write.
"""

import functools
import hashlib
import os
import shutil
import stat
import sys
from pathlib import Path

import llvmlite
import numba

from backcast.core.files import is_private, remove_remains

_PACKAGE = Path(__file__).parents[1]
_KEPT_VERSIONS = 6
WITH_KERNELS = (
    "core",
    "drivers",
    "exact",
    "learners",
    "models",
    "planners",
    "values",
    "worlds",
)  # editing others invalidates nothing
_changes: list[str] = []  # found in Numba since this process began


@functools.cache
def cache_directory() -> Path:
    """BACKCAST_CACHE_DIR or the user's cache directory; below it a directory named by the sources' hash."""
    base = Path(os.environ.get("BACKCAST_CACHE_DIR") or _users_caches() / _PACKAGE.name)
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE)
        if name.parts[0] in WITH_KERNELS:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return base / f"kernels-{digest.hexdigest()[:16]}"


def _users_caches() -> Path:
    """Where programs of this user keep what they could make again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cache_trouble() -> str:
    """Why the cache directory is not used, and what to do about it; empty if it is used, or if it is not there yet.

    Who may write a directory above it could put another in its place, but no files that this user owns.
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
        return f"somebody else owns it or may write in it; {advice}"
    return ""


def is_used() -> bool:
    """Whether there is no trouble with the cache; if there is, it is said, once."""
    return not _changes and _is_safe()


def give_up(error: Exception) -> None:
    """Do without the cache from now on: this error shows that Numba is not as we know it. It is said, once."""
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
    """Make the cache directory, or remove what processes that were killed left there."""
    current = cache_directory()
    if current.exists():
        remove_remains(current)
        return
    current.mkdir(parents=True, exist_ok=True, mode=0o700)
    mine = [path for path in current.parent.glob("kernels-*") if is_private(path.lstat())]
    for old in sorted(mine, key=lambda path: path.lstat().st_mtime)[:-_KEPT_VERSIONS]:
        shutil.rmtree(old, ignore_errors=True)


def of_backcast(thing: object) -> bool:
    """Whether a function or a class is one of this package."""
    return (thing.__module__ or "").partition(".")[0] == _PACKAGE.name
