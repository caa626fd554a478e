"""Atomic writes, file locks, and safe reading of regular files."""

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

REMAINS = 3600.0  # seconds after which an unfinished file counts as abandoned, if locks are not available
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # errors of file systems without locks
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
    """Yield the path of a new file beside `target`; on success it is renamed to `target`, on failure removed.

    Write to it in place: it is locked, which shows others that it is in use (`remove_remains`).
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
    """Remove unfinished files of killed processes (`atomic_path`); files being written are kept.

    On the machine that made it, a file that is not locked is abandoned. Locks of other machines may be invisible, and
    some file systems have none: there a file is abandoned after an hour.
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
    """Hold a lock on a file, exclusive or shared; wait for it as long as needed.

    The operating system releases it when the process ends, however it ends. Without locks, there is no waiting.

    Raises:
        InputError: if the path exists and is not a regular file.
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
    """The content of a regular file that only this user, or the administrator, can have written.

    Raises:
        InputError: if it is a symbolic link, a FIFO or the like.
        OSError: if it is missing, or if another user owns it or may write it.
    """
    with opened_regular(path, os.O_RDONLY | NO_FOLLOWING) as descriptor:
        if not is_private(os.fstat(descriptor)):
            raise PermissionError(errno.EPERM, "another user may write to it", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()


@contextlib.contextmanager
def opened_regular(path: Path, flags: int) -> Iterator[int]:
    """Open a regular file and return its descriptor; anything else is refused.

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
    """Raise InputError if the path is not a regular file, OSError if it does not exist."""
    _refuse(path, path.stat(follow_symlinks=follow_symlinks))


def is_private(found: os.stat_result) -> bool:
    """Whether this user owns a file or directory and no other user may write it; not checked on Windows."""
    return os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


@contextlib.contextmanager
def _new_part(target: Path) -> Iterator[Path]:
    """Create a unique file beside `target`, locked if locks are available."""
    while True:
        part = target.with_name(f".{target.name}.{_MACHINE}{secrets.token_hex(4)}.part")
        with opened_regular(part, os.O_RDWR | os.O_CREAT | os.O_EXCL) as held:
            if _lock(held) and not _is_at(part, held):
                continue  # another process removed it as abandoned before it was locked
            if fcntl is not None:
                yield part
                return
        yield part  # Windows cannot rename an open file
        return


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Lock a file, if locks are available, and yield whether it is; BlockingIOError if another process holds it."""
    if fcntl is None or not os.access(path, os.W_OK):
        yield False
        return
    with opened_regular(path, os.O_RDWR | NO_FOLLOWING) as held:
        yield _lock(held, waiting=False)


def _lock(descriptor: int, shared: bool = False, waiting: bool = True) -> bool:
    """Lock a file until it is closed; return False if locks are not available."""
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
