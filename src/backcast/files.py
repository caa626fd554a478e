"""Files that are whole or not there, files that one process at a time may hold, and files that are files."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from backcast.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # said by file systems that have none
NO_FOLLOWING = getattr(os, "O_NOFOLLOW", 0)  # Windows has neither
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
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
    """Yield a temporary path beside `target`; on success it becomes `target`, on failure it vanishes."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path, when_waiting: Callable[[], None], shared: bool = False) -> Iterator[None]:
    """Hold the lock on a file: alone, or together with others that share it; wait for it as long as it takes.

    The operating system gives it back when the process ends, however it ends. Where it has no locks, nobody waits.

    Raises:
        InputError: if there is something at this path that is not a regular file.
    """
    with os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT | NO_FOLLOWING), "rb") as held:
        if fcntl is not None:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            try:
                fcntl.flock(held, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                when_waiting()
                fcntl.flock(held, kind)
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
        yield


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises:
        InputError: if it is larger, or if it is a FIFO, a device, a directory or a socket, which are not read at all.
        OSError: if it is missing or cannot be read.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path}: larger than {most:,} bytes, the most that is read of such a file")
    return content


def open_regular(path: Path, flags: int) -> int:
    """The descriptor of a regular file; what is no regular file is refused and, as far as possible, not even opened.

    Raises:
        InputError: if it is a FIFO, a device, a directory, a socket or, with `NO_FOLLOWING`, a symbolic link.
        OSError: if it cannot be opened.
    """
    with contextlib.suppress(FileNotFoundError):
        refuse_special(path, follow_symlinks=not flags & NO_FOLLOWING)
    descriptor = os.open(path, flags | _NO_WAITING, 0o666)
    try:
        _refuse(path, os.fstat(descriptor))  # it may have been exchanged
    except InputError:
        os.close(descriptor)
        raise
    return descriptor


def refuse_special(path: Path, follow_symlinks: bool = True) -> None:
    """Raise InputError if there is something that is no regular file, OSError if there is nothing."""
    _refuse(path, path.stat(follow_symlinks=follow_symlinks))


def _refuse(path: Path, found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise InputError(f"{path}: {_KINDS.get(kind, 'no file')}, expected a regular file; move it away")
