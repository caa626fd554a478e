"""A seeded sample of mutants, and those that are known to do the same as the code."""

import ast
import hashlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutants.changes import Change, changed, changes_of

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Mutant(NamedTuple):
    """One change of one file.

    Attributes:
        file: relative to the package, as in models/rows.py.
        change: what is changed.
        text: the file as it is then.
        line: the first line that is changed.
        diff: the changed lines, without their indentation.
    """

    file: str
    change: Change
    text: str
    line: int
    diff: tuple[str, ...]

    @property
    def package(self) -> str:
        """The package that the file is in."""
        return self.file.partition("/")[0]

    @property
    def key(self) -> str:
        """A short name, which stays the same while the changed lines and the name of their function do."""
        return hashlib.sha256("\n".join((self.file, self.change.function, *self.diff)).encode()).hexdigest()[:8]

    def __str__(self) -> str:
        return "\n".join((f"{self.key}  {self.file}:{self.line} in {self.change.function}", *self.diff))


def sample(package: Path, modules: list[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants of these modules (`models`, `models/rows`), all changes being equally likely.

    The order of changes follows from what each of them changes, so that a sample stays nearly the same when the code
    changes elsewhere.
    """
    everything = [
        (file, source, change)
        for module in modules
        for file, source in _files(package, module)
        for change in changes_of(source)
    ]
    everything.sort(key=lambda each: _drawn(seed, *each))
    found: list[Mutant] = []
    for file, source, change in everything:
        if len(found) == count:
            break
        if _is_program(text := changed(source, change)):
            found.append(Mutant(file, change, text, *_difference(source, change, text)))
    return found


def equivalent(mutants: list[Mutant]) -> list[Mutant]:
    """Those that are listed as doing the same as the code, recognised by file, function and changed lines."""
    known = {(entry["file"], entry["function"], *entry["diff"].strip().splitlines()) for entry in listed()}
    return [mutant for mutant in mutants if (mutant.file, mutant.change.function, *mutant.diff) in known]


def listed() -> list[dict[str, str]]:
    """The list of mutants that do the same as the code: `file`, `function`, `diff`, and `why`."""
    entries: list[dict[str, str]] = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]
    return entries


def _drawn(seed: int, file: str, source: str, change: Change) -> str:
    """A random text for a change, from the seed, its file and function, and its place in its line."""
    text = source.encode()
    before, after = text.rfind(b"\n", 0, change.begin) + 1, text.find(b"\n", change.end)
    pieces = text[before : change.begin].lstrip(), change.text.encode(), text[change.end : after]
    return hashlib.sha256(b"\n".join((f"{seed} {file} {change.function}".encode(), *pieces))).hexdigest()


def _is_program(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _files(package: Path, module: str) -> Iterator[tuple[str, str]]:
    at = package / module
    for path in sorted(at.rglob("*.py")) if at.is_dir() else [at.with_suffix(".py")]:
        yield path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")


def _difference(source: str, change: Change, text: str) -> tuple[int, tuple[str, ...]]:
    """The first line that is changed, and the changed lines before and after."""
    before = source.encode()
    first, last = (before[:place].count(b"\n") for place in (change.begin, change.end))
    old = source.splitlines()[first : last + 1]
    new = text.splitlines()[first : first + change.text.count("\n") + 1]
    return first + 1, (*(f"- {line.strip()}" for line in old), *(f"+ {line.strip()}" for line in new))
