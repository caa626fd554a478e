"""Arrays in untrusted .npz files: the headers of a file are checked before any array is read.

A .npz file is a ZIP archive of .npy files, each with a short header and numbers. Only the requested arrays are read,
headers first. The sizes in them are binding: no more is read than the archive declares.
"""

import io
import math
import os
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from numpy.lib import format as npy

from backcast.core.errors import InputError, in_a_line
from backcast.core.files import opened_regular

_PIECE = 2**20  # most bytes read at once, and so the largest table of contents
_RATIO = 1032  # the largest compression ratio of DEFLATE
_HEADER = 1000  # most characters of the header of an array


class _Member(NamedTuple):
    entry: zipfile.ZipInfo
    shape: tuple[int, ...]
    size: int  # in bytes


class Archive:
    """Some arrays of a .npz file; `archive[name]` reads one.

    Args:
        file: path of the archive.
        kinds: the names of the arrays, and the kind of each: "b" (bool), "i" (integers), "u" (bytes) or "f" (floating
            point).
        newer: arrays that files of older versions lack.

    Raises:
        Exception: of almost any type if the file is damaged or inconsistent.
    """

    def __init__(self, file: io.BufferedReader, kinds: Mapping[str, str], newer: Collection[str] = ()) -> None:
        self._zip = zipfile.ZipFile(file)
        there = [name for name in kinds if name not in newer or name in self]
        self._members = {name: self._member(name, kinds[name]) for name in there}
        self.size = sum(member.size for member in self._members.values())
        if self.size > _RATIO * os.fstat(file.fileno()).st_size:
            raise ValueError(f"it claims to hold {self.size:,} bytes, more than it can")

    def __getitem__(self, name: str) -> Any:
        with self._zip.open(self._members[name].entry) as member:
            return npy.read_array(member, allow_pickle=False, max_header_size=_HEADER)

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._zip.namelist()

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, without reading it."""
        return self._members[name].shape

    def length(self, name: str) -> int:
        """The length of a one-dimensional array, without reading it."""
        length = math.prod(self._members[name].shape)
        self.refuse_other_shape(name, (length,))
        return length

    def refuse_other_shape(self, name: str, expected: tuple[int, ...]) -> None:
        """Raise unless an array has this shape, without reading it."""
        shape = self._members[name].shape
        if shape != expected:
            raise ValueError(f"{name} has the shape {shape}, expected {expected}")

    def refuse_too_large(self, peak: int) -> None:
        """Raise unless there is memory for `peak` times the size of the arrays."""
        needed, there = peak * self.size, physical_memory()
        if needed > there:
            raise MemoryError(
                f"it needs about {needed / 2**30:,.1f} GiB of memory, and there are {there / 2**30:,.1f} GiB"
            )

    def _member(self, name: str, kind: str) -> _Member:
        entries = [entry for entry in self._zip.infolist() if entry.filename == f"{name}.npy"]
        if len(entries) != 1:
            raise ValueError(f"it has {len(entries)} arrays {name!r}, expected one")
        (entry,) = entries
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others may need much memory
            raise ValueError(f"{name} is compressed by an unknown method")
        with self._zip.open(entry) as member:
            if npy.read_magic(member) != (1, 0):  # in others a header may be of any length
                raise ValueError(f"{name} is of an unknown version")
            shape, _, dtype = npy.read_array_header_1_0(member, max_header_size=_HEADER)
            header = member.tell()
        if dtype.kind != kind:
            raise ValueError(f"{name} holds {dtype}")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or entry.file_size != header + size:
            raise ValueError(f"{name} has the shape {shape}, but {entry.file_size - header:,} bytes")
        return _Member(entry, shape, size)


@contextmanager
def opened_archive(path: Path, kinds: Mapping[str, str], newer: Collection[str] = ()) -> Iterator[Archive]:
    """Open an archive and check its headers (`Archive`).

    Raises:
        InputError: if it is not a regular file.
    """
    with (
        opened_regular(path, os.O_RDONLY) as descriptor,
        _InPieces(io.FileIO(descriptor, closefd=False)) as file,
    ):
        yield Archive(file, kinds, newer)


@contextmanager
def refusing_damage(path: Path, what: str) -> Iterator[None]:
    """Turn every error except a missing file into an InputError that says that the file is not `what`."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except MemoryError as error:
        raise InputError(f"{path}: too large for this machine ({in_a_line(error)})") from error
    except Exception as error:  # a damaged archive raises almost anything
        raise InputError(f"{path}: not {what} ({in_a_line(error)})") from error


class _InPieces(io.BufferedReader):
    """A file with a limit on each read, because an untrusted archive may claim any size."""

    def read(self, size: int | None = -1) -> bytes:
        """Read the given number of bytes or, without a number, up to the limit."""
        if size is not None and size > _PIECE:
            raise ValueError("its table of contents is too large")
        return super().read(_PIECE if size is None or size < 0 else size)


def physical_memory() -> float:
    """The memory of this machine in bytes; infinite if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return math.inf
