"""Files that are whole or not there, files that one process at a time may hold, and nothing that is no file."""

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from backcast.core.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

REMAINS = 3600.0  # seconds after which a file that is half written is nobody's, where locks do not tell
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # said by file systems that have none
NO_FOLLOWING = getattr(os, "O_NOFOLLOW", 0)  # Windows has neither
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_PART = re.compile(r"\..+\.([0-9a-f]{8})?[0-9a-f]{8}\.part")  # earlier versions did not name the machine
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextlib.contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield the path of a new empty file beside `target`; on success it becomes `target`, on failure it vanishes.

    Write it in place: it is locked, which tells others that it is being written (`remove_remains`).
    """
    with _new_part(target) as part:
        try:
            yield part
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def remove_remains(directory: Path) -> None:
    """Remove what processes that were killed had begun to write here (`atomic_path`); what is being written stays.

    On the machine that made it, a file that is not locked is nobody's. Locks of other machines may be invisible, and
    some file systems have none: there it is nobody's after an hour.
    """
    for path in directory.glob(".*.part"):
        made = _PART.fullmatch(path.name)
        if made is None:
            continue
        with contextlib.suppress(OSError, InputError), _alone(path) as alone:  # an OSError also if it is locked
            if (alone and made[1] == _MACHINE) or time.time() - path.stat().st_mtime > REMAINS:
                path.unlink()


@contextlib.contextmanager
def locked(path: Path, when_waiting: Callable[[], None], shared: bool = False) -> Iterator[None]:
    """Hold the lock on a file: alone, or together with others that share it; wait for it as long as it takes.

    The operating system gives it back when the process ends, however it ends. Where it has no locks, nobody waits.

    Raises:
        InputError: if there is something else at this path than a regular file.
    """
    with opened_regular(path, os.O_RDWR | os.O_CREAT | NO_FOLLOWING) as held:
        try:
            _lock(held, shared, waiting=False)
        except BlockingIOError:
            when_waiting()
            _lock(held, shared)
        yield


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises:
        InputError: if it is larger, or if it is a FIFO, a device, a directory or a socket, which are not read at all.
        OSError: if it is missing or cannot be read.
    """
    with opened_regular(path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path}: larger than {most:,} bytes, the most that is read of such a file")
    return content


def checksum(path: Path) -> str:
    """The SHA-256 of a regular file.

    Raises:
        InputError: if it is a FIFO, a device, a directory or a socket.
        OSError: if it is missing or cannot be read.
    """
    with opened_regular(path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_own(path: Path) -> bytes:
    """The content of a regular file that nobody but this user, and the administrator, can have written.

    Raises:
        InputError: if it is a symbolic link, a FIFO or the like.
        OSError: if it is missing, or if somebody else owns it or may write it.
    """
    with opened_regular(path, os.O_RDONLY | NO_FOLLOWING) as descriptor:
        if not is_private(os.fstat(descriptor)):
            raise PermissionError(errno.EPERM, "somebody else may write it", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()


@contextlib.contextmanager
def opened_regular(path: Path, flags: int) -> Iterator[int]:
    """The descriptor of a regular file; anything else is refused and, unless it comes in between, not opened.

    Raises:
        InputError: if it is a FIFO, a device, a directory, a socket or, with `NO_FOLLOWING`, a symbolic link.
        OSError: if it cannot be opened.
    """
    with contextlib.suppress(FileNotFoundError):
        refuse_special(path, follow_symlinks=not flags & NO_FOLLOWING)
    descriptor = os.open(path, flags | _NO_WAITING, 0o666)
    try:
        _refuse(path, os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_special(path: Path, follow_symlinks: bool = True) -> None:
    """Raise InputError if there is something that is no regular file, OSError if there is nothing."""
    _refuse(path, path.stat(follow_symlinks=follow_symlinks))


def is_private(found: os.stat_result) -> bool:
    """Whether this user owns a file or directory and nobody else may write it; on Windows this is not checked."""
    return os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


@contextlib.contextmanager
def _new_part(target: Path) -> Iterator[Path]:
    """A file beside `target` that nobody else made, locked where there are locks."""
    while True:
        part = target.with_name(f".{target.name}.{_MACHINE}{secrets.token_hex(4)}.part")
        with opened_regular(part, os.O_RDWR | os.O_CREAT | os.O_EXCL) as held:
            if _lock(held) and not _is_at(part, held):
                continue  # somebody took it for a remnant before it was locked
            if fcntl is not None:
                yield part
                return
        yield part  # Windows renames no file that is open
        return


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether it is certain that nobody holds this file, and holds it meanwhile; BlockingIOError if somebody does."""
    if fcntl is None or not os.access(path, os.W_OK):
        yield False
        return
    with opened_regular(path, os.O_RDWR | NO_FOLLOWING) as held:
        yield _lock(held, waiting=False)


def _lock(descriptor: int, shared: bool = False, waiting: bool = True) -> bool:
    """Lock a file until it is closed; False where there are no locks."""
    if fcntl is None:
        return False
    kind = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if waiting else fcntl.LOCK_NB)
    try:
        fcntl.flock(descriptor, kind)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _refuse(path: Path, found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise InputError(f"{path}: {_KINDS.get(kind, 'no file')}, expected a regular file; move it away")
