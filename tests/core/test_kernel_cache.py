"""Compiled code is read from disk only if nobody else can have put it there."""

import os
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from backcast.core.files import is_private, read_own

CODE = """
import numpy as np
from backcast.core.compiling import cache_directory
from backcast.core.randomness import pick
print(cache_directory())
print(pick(np.array([0.5, 1.0]), 0, 2, 0.7), pick(np.array([1.0], dtype=np.float32), 0, 1, 0.2))
print(sum(pick.stats.cache_hits.values()))
"""
AS_ROOT = os.geteuid() == 0
SOMEBODY = 12345  # the number of another user


def run(base, umask=0o022):
    """Call two kernels with a cache in this directory: their results, the hits, what was said; and the directory."""
    environment = {**os.environ, "BACKCAST_CACHE_DIR": str(base)}
    command = [sys.executable, "-W", "error", "-c", CODE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, umask=umask)
    directory, results, hits = done.stdout.splitlines()
    return Path(directory), results, int(hits), done.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache with two kernels, which nobody changes."""
    directory, results, hits, said = run(tmp_path_factory.mktemp("filled") / "cache")
    assert (results, hits, said) == ("1 0", 0, "")
    assert len(list(directory.iterdir())) == 2
    return directory


@pytest.fixture
def kept(filled, tmp_path):
    """A copy of it."""
    return shutil.copytree(filled, tmp_path / "cache" / filled.name)


def test_what_this_user_wrote_is_loaded(kept):
    assert run(kept.parent)[1:] == ("1 0", 2, "")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        pytest.param(lambda content: b"{}\n" + content, marks=pytest.mark.slow),
        pytest.param(lambda content: b"", marks=pytest.mark.slow),
    ],
)
def test_damaged_files_are_replaced(kept, damage):
    for path in kept.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    assert run(kept.parent)[1:] == ("1 0", 0, "")
    assert run(kept.parent)[1:] == ("1 0", 2, "")


def write_for_all(directory):
    directory.chmod(0o777)


def write_for_the_group(directory):
    directory.chmod(0o770)


def link(directory):
    directory.rename(directory.parent / "elsewhere")
    directory.symlink_to(directory.parent / "elsewhere")


def give_away(directory):
    os.chown(directory, SOMEBODY, SOMEBODY)


REFUSED = [
    write_for_the_group,
    *(
        pytest.param(change, marks=pytest.mark.slow)
        for change in [write_for_all, link, *([give_away] if AS_ROOT else [])]
    ),
]


@pytest.mark.parametrize("change", REFUSED)
def test_a_directory_that_others_may_have_filled_is_not_used(kept, change):
    directory = kept
    change(directory)
    before = sorted(directory.iterdir())
    found, results, hits, said = run(directory.parent)
    assert (found, results, hits) == (directory, "1 0", 0)
    reason = "it is a symbolic link" if change is link else "another user owns it or may write to it"
    advice = "remove it, or set BACKCAST_CACHE_DIR to a directory of your own"
    assert said == f"backcast: the cache {directory} is not used: {reason}; {advice}\n"
    assert sorted(directory.iterdir()) == before


def test_files_that_others_may_have_written_are_replaced(kept, tmp_path):
    first, second = sorted(kept.iterdir())
    first.chmod(0o666)
    if AS_ROOT:
        os.chown(second, SOMEBODY, SOMEBODY)
    else:
        second.rename(tmp_path / "elsewhere")
        second.symlink_to(tmp_path / "elsewhere")
    assert run(kept.parent)[1:] == ("1 0", 0, "")
    assert run(kept.parent)[1:] == ("1 0", 2, "")


@pytest.mark.slow
def test_a_shared_directory_above_is_no_trouble(tmp_path):
    """As a volume of Kubernetes, in which the cache of each user is private, whatever the umask."""
    base = tmp_path / "volume"
    base.mkdir()
    base.chmod(0o777)
    (base / "kernels-of-nobody").symlink_to(tmp_path / "missing")
    directory = run(base, umask=0)[0]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert run(base)[1:] == ("1 0", 2, "")


def test_what_is_private(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"mine")
    for mode, private in ((0o600, True), (0o644, True), (0o664, False), (0o646, False)):
        path.chmod(mode)
        assert is_private(path.stat()) == private
    with pytest.raises(PermissionError, match="another user may write to it"):
        read_own(path)
    path.chmod(0o600)
    assert read_own(path) == b"mine"


def test_doctor_tells_why_the_cache_is_not_used(kept):
    kept.chmod(0o777)
    environment = {**os.environ, "BACKCAST_CACHE_DIR": str(kept.parent)}
    code = "from backcast.cli.doctor import CHECKS, examine; CHECKS.clear(); examine()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert f"cache      {kept} (not used: another user owns it or may write to it; remove it, or" in done.stdout


TWO_PARTS = '''
import sys
from types import ModuleType
from backcast.core.compiling import kernel

PART = """
from typing import NamedTuple
from backcast.core.compiling import part

@part
class Push(NamedTuple):
    least: float
    times: int

    def amount(self):
        return self.least + AMOUNT
"""
KERNEL = """
def twice(part):
    return 2 * part.amount()
"""

def module(name, source):
    made = sys.modules[name] = ModuleType(name)
    exec(source, made.__dict__)
    return made

twice = kernel(module("backcast.planners.pushing", KERNEL).twice)
amounts = {{"backcast.models.pushing": 3, "backcast.learners.pushing": 7}}
for name in {order}(amounts):
    module(name, PART.replace("AMOUNT", str(amounts[name])))
for name in amounts:
    Push = sys.modules[name].Push
    print(twice(Push(0.0, 1)), Push(0.0, 1).amount(), end=" ")
print(sum(twice.stats.cache_hits.values()) + sum(Push.amount.stats.cache_hits.values()))
'''


@pytest.mark.slow
def test_parts_of_the_same_name_and_fields_do_not_share_what_is_kept(tmp_path):
    """Whichever is defined first, and so keeps its name; the next process of the same order finds all of its code."""
    environment = {**os.environ, "BACKCAST_CACHE_DIR": str(tmp_path)}

    def run_in(order):
        command = [sys.executable, "-c", TWO_PARTS.format(order=order)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    said = [run_in(order) for order in ("list", "reversed", "list", "reversed")]
    assert said == ["6.0 3.0 14.0 7.0 0"] * 2 + ["6.0 3.0 14.0 7.0 3"] * 2


def test_kernels_are_found_by_the_next_process(tmp_path):
    code = textwrap.dedent("""
        import backcast as bc
        from backcast.drivers.loop import run_seeds
        bc.run(bc.worlds.chain((3, 2)), bc.agent("td"), 2, 1)
        print(sum(run_seeds.stats.cache_hits.values()), sum(run_seeds.stats.cache_misses.values()))
    """)
    environment = {**os.environ, "BACKCAST_CACHE_DIR": str(tmp_path)}
    outputs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs == ["0 1\n", "1 0\n"]


def test_a_cache_that_cannot_be_written_is_no_trouble(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    assert run(blocked)[1:] == ("1 0", 0, "")
