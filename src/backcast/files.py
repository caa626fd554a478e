"""Files that are whole or not there, and files that one process at a time may hold."""

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # said by file systems that have none


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
    """
    with path.open("a") as held:
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
