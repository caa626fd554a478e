"""Files of worlds, which may be anybody's: an equal world or a sentence, in little memory."""

import contextlib
import io
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import backcast as bc
from random_worlds import random_mdp

MEMORY = 10_000_000  # bytes that the refusal of a file may take; what they claim is much more


@pytest.fixture
def world():
    return random_mdp(np.random.default_rng(1), 6, 2, terminals=1)


@pytest.fixture
def saved(world, tmp_path):
    world.save(tmp_path / "world.npz")
    return tmp_path / "world.npz"


def npy(array, **options):
    """An array as the bytes of a .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def header(descr, shape, version=(1, 0)):
    """The header of an array, and nothing else."""
    buffer = io.BytesIO()
    write = np.lib.format.write_array_header_1_0 if version == (1, 0) else np.lib.format.write_array_header_2_0
    write(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def load(path):
    """The world, and the most memory that reading it took; a refusal is one sentence, and takes little memory."""
    tracemalloc.start()
    try:
        with refusals_are_sentences(path):
            return bc.FiniteMDP.load(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@contextlib.contextmanager
def refusals_are_sentences(path):
    try:
        yield
    except bc.InputError as error:
        memory, said = tracemalloc.get_traced_memory()[1], str(error)
        if memory > MEMORY or "\n" in said or len(said) > 500 or not said.startswith(f"{path}: "):
            pytest.fail(f"{memory:,} bytes to say: {said}")
        raise


def test_arrays_that_are_not_needed_are_not_read(saved, world):
    write(saved, {**parts_of(saved), "more.npy": npy(np.zeros(10_000_000))})
    assert saved.stat().st_size < 100_000
    loaded, memory = load(saved)
    assert loaded == world
    assert memory < MEMORY


def test_a_large_world_may_be_loaded(tmp_path):
    """What is allowed does not depend on how well it is compressed."""
    n = 200_000
    table = bc.worlds.random_walk(5).mdp.table
    eye = type(table)((np.ones(n), np.arange(n), np.arange(n + 1)), (n, n))
    large = bc.FiniteMDP(eye, eye * 0, 0.9, np.eye(1, n)[0])
    large.save(tmp_path / "large.npz")
    assert bc.FiniteMDP.load(tmp_path / "large.npz") == large


LARGE = bytes(24_000_000)
CRAFTED = {
    "a shape of a terabyte": ({"reward.npy": header("<f8", (10**12,))}, "reward has the shape .*, but 0 bytes"),
    "a negative shape": ({"reward.npy": header("<f8", (-1,)) + bytes(8)}, "reward has the shape"),
    "more bytes than the shape": ({"reward.npy": npy(np.zeros(3)) + LARGE}, "reward has the shape"),
    "another length": ({"reward.npy": npy(np.zeros(3_000_000))}, r"reward has the shape \(3000000,\), expected"),
    "many states": ({"start.npy": npy(np.zeros(3_000_000))}, r"terminal has the shape \(6,\), expected \(3000000,\)"),
    "two dimensions": ({"start.npy": npy(np.zeros((1000, 3000)))}, r"start has the shape \(1000, 3000\), expected"),
    "no number of actions": ({"n_actions.npy": npy(np.ones(3_000_000, dtype=int))}, "n_actions has the shape"),
    "negative actions": ({"n_actions.npy": npy(-2)}, "row_start has the shape"),
    "very many actions": ({"n_actions.npy": npy(10**18)}, "row_start has the shape"),
    "another format": ({"format.npy": npy(2)}, "format 2, this version reads format 1"),
    "integers": ({"reward.npy": npy(np.zeros(12, dtype=int))}, "reward holds int64"),
    "text": ({"start.npy": npy(np.array(["a" * 1000] * 6))}, "start holds <U1000"),
    "objects": ({"start.npy": npy(np.array([{}] * 6), allow_pickle=True)}, "start holds object"),
    "a nested type": ({"start.npy": npy(np.zeros(6, dtype=[("a", [("b", "f8", (9, 9))])]))}, "start holds"),
    "a missing array": ({"start.npy": None}, "it has 0 arrays 'start', expected one"),
    "another version": ({"start.npy": header("<f8", (6,), (2, 0)) + bytes(48)}, "start is of an unknown version"),
    "an endless header": ({"start.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + LARGE}, "start is of an"),
    "a long header": ({"start.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", 65535) + b"[" * 65535}, "Header info"),
    "a deep header": ({"start.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", 900) + b"[" * 900}, ""),
    "no array at all": ({"start.npy": b"what?"}, "magic|EOF"),
    "rows that end early": ({"row_start.npy": npy(np.zeros(13, dtype=int))}, "row_start does not end where"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_what_is_not_as_it_should_be_is_refused(name, saved):
    changes, reason = CRAFTED[name]
    parts = {**parts_of(saved), **changes}
    write(saved, {each: content for each, content in parts.items() if content is not None})
    with pytest.raises(bc.InputError, match=rf"not a FiniteMDP saved by Backcast \(.*{reason}"):
        load(saved)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(saved):
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("start.npy", npy(np.ones(6) / 6))
    with pytest.raises(bc.InputError, match="it has 2 arrays 'start', expected one"):
        load(saved)


def test_other_methods_of_compression_are_refused(saved):
    """A few bytes can make LZMA take gigabytes."""
    write(saved, parts_of(saved), zipfile.ZIP_LZMA)
    with pytest.raises(bc.InputError, match="compressed by an unknown method"):
        load(saved)


def test_an_archive_of_very_many_files_is_refused(saved):
    write(saved, {**parts_of(saved), **{f"{number}.npy": b"" for number in range(100_000)}}, zipfile.ZIP_STORED)
    with pytest.raises(bc.InputError, match="its table of contents is too large"):
        load(saved)


def claiming(path, size):
    """Have an archive say that its rewards, and all that goes with them, are of this size."""
    entries = size // 8
    content = {
        **parts_of(path),
        "reward.npy": header("<f8", (entries,)),
        "probability.npy": header("<f8", (entries,)),
        "next_state.npy": header("<i4", (entries,)),
    }
    write(path, content, zipfile.ZIP_STORED)
    whole = bytearray(path.read_bytes())
    for name in content:
        if name.removesuffix(".npy") in ("reward", "probability", "next_state"):
            real = len(content[name])
            each = 4 if name.startswith("next") else 8
            place = whole.rfind(name.encode())  # in the table of contents, whose sizes are believed
            assert struct.unpack_from("<I", whole, place - 22) == (real,)
            struct.pack_into("<I", whole, place - 22, real + each * entries)
    path.write_bytes(bytes(whole))


def test_an_archive_that_cannot_hold_what_it_claims_is_refused(saved):
    claiming(saved, 2**30)
    with pytest.raises(bc.InputError, match=r"it claims to hold 2,684,.* bytes, more than it can"):
        load(saved)


def test_a_world_that_needs_more_memory_than_there_is_is_refused(saved, monkeypatch):
    monkeypatch.setattr("backcast.core.archive.physical_memory", lambda: 1000)
    with pytest.raises(
        bc.InputError, match=r"too large for this machine \(it needs about 0.0 GiB of memory, and there"
    ):
        load(saved)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(bc.InputError, match="expected a regular file"):
            load(path)


def test_damaged_files_give_an_equal_world_or_a_sentence(saved, world):
    whole, rng, refused = saved.read_bytes(), np.random.default_rng(0), 0
    for trial in range(600):
        damaged = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(whole))] = rng.integers(256)
        if trial % 3 == 0:
            del damaged[rng.integers(len(whole)) :]
        saved.write_bytes(bytes(damaged))
        refused += 1
        with contextlib.suppress(bc.InputError):
            assert load(saved)[0] == world
            refused -= 1
    assert 0 < refused < 600
