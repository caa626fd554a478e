"""The tool itself: which changes it makes, and how it chooses tests."""

from pathlib import Path

import pytest

import backcast as bc
from mutants import sample
from mutants.changes import changed, changes_of
from mutants.trials import LONGEST, Reach, asked_about


def bodies(source):
    """The last line of each mutant."""
    return sorted({changed(source, change).splitlines()[-1].strip() for change in changes_of(source)})


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("return a < b", ["return a <= b", "return a >= b"]),
        ("return a is not b", ["return a is b"]),
        ("return a - b", ["return a", "return a + b"]),
        ("return α * (b + 1)", ["return (b + 1)", "return α", "return α * (1)", "return α * (b + 0)"]),
        ("return a and b and c", ["return a and b", "return a and b or c", "return a and c"]),
        ("return not a", ["return a"]),
        ("return [a, True, 0, 2.5]", ["return [a, False, 0, 2.5]", "return [a, True, 0, 5.0]"]),
        ("return min(a, b)", ["return max(a, b)"]),
        ("return a.argmax()", ["return a.argmin()"]),
        ("a[b] = c", ["pass"]),
        ("a[b] -= c", ["a[b] += c", "pass"]),
        ("f(a, b)", ["f(b, a)", "pass"]),
        ("return range(a, b)", ["return range(a + 1, b)", "return range(a, b - 1)", "return range(b, a)"]),
        ("return a if b else c", ["return a if not b else c"]),
        ("raise ValueError(f'{a} is below {0}')", ["pass"]),
    ],
)
def test_each_kind_of_place_has_its_changes(line, mutants):
    assert set(mutants) <= set(bodies(f"def f(a, b, c):\n    {line}\n"))


def test_arguments_of_one_type_are_exchanged():
    source = "def f(s: int, a: int, x: Vector):\n    return g(s, a, x)\n"
    assert bodies(source) == ["return g(a, s, x)"]


@pytest.mark.parametrize(
    "source",
    [
        '"""At most 1 of 2."""\n',
        "__all__ = ['a']\n",
        "LARGEST = 2**30 - 1\n",
        "def f(a: int | None) -> tuple[int, 1]:\n    return a\n",
        "class C(Protocol):\n    def f(self, a=1):\n        return 1 + a\n",
        "class C:\n    x: int\n    def __repr__(self):\n        return 1 + a\n",
        "@cache(maxsize=4)\ndef f(a):\n    return a\n",
    ],
)
def test_what_no_test_is_meant_to_notice_is_left_alone(source):
    assert changes_of(source) == []


def test_a_change_knows_its_function_by_the_line_of_its_first_decorator():
    (change,) = changes_of("class C:\n    x: int\n\n    @kernel\n    def f(self, a):\n        return not a\n")
    assert (change.function, change.entry) == ("C.f", 4)


@pytest.fixture
def package(tmp_path):
    (tmp_path / "models").mkdir()
    for name, line in (("one", "return a < b"), ("two", "return a + b")):
        (tmp_path / "models" / f"{name}.py").write_text(f"def f(a, b):\n    {line}\n")
    return tmp_path


def test_a_sample_is_seeded_and_has_no_mutant_twice(package):
    drawn = sample.sample(package, ["models"], 4, seed=1)
    assert drawn == sample.sample(package, ["models"], 4, seed=1)
    assert drawn != sample.sample(package, ["models"], 4, seed=2)
    assert len(set(drawn)) == 4
    assert len(sample.sample(package, ["models/one"], 100, seed=1)) == 2


def test_a_sample_stays_the_same_when_code_changes_elsewhere(package):
    drawn = sample.sample(package, ["models"], 3, seed=0)
    (package / "models" / "three.py").write_text("def h():\n    return 1\n")
    moved = package / "models" / "one.py"
    moved.write_text("\n\n" + moved.read_text())
    again = sample.sample(package, ["models"], 100, seed=0)
    keys = [mutant.key for mutant in again]
    places = [keys.index(mutant.key) for mutant in drawn]
    assert places == sorted(places)


def test_equivalent_mutants_are_recognised_by_what_is_changed_wherever_it_stands(package, monkeypatch, tmp_path):
    listed = tmp_path / "equivalent.toml"
    listed.write_text(
        "[[mutant]]\nfile = 'models/one.py'\nfunction = 'f'\nwhy = 'a never equals b'\n"
        "diff = '''\n- return a < b\n+ return a <= b\n'''\n"
    )
    monkeypatch.setattr(sample, "EQUIVALENT", listed)
    moved = package / "models" / "one.py"
    moved.write_text("\n\n" + moved.read_text())
    (same,) = sample.equivalent(sample.sample(package, ["models"], 100, seed=0))
    assert (same.line, same.diff) == (4, ("- return a < b", "+ return a <= b"))


def test_the_list_of_equivalent_mutants_is_of_the_code_as_it_is():
    for entry in sample.listed():
        source = (Path(bc.__file__).parent / entry["file"]).read_text(encoding="utf-8")
        lines = {line.strip() for line in source.splitlines()}
        assert {line[2:] for line in entry["diff"].splitlines() if line.startswith("- ")} <= lines, entry
        assert entry["function"] in {change.function for change in changes_of(source)}, entry
        assert entry["why"]


def test_tests_that_reach_the_function_are_asked_the_quickest_first_while_there_is_time(package):
    mutant = sample.sample(package, ["models/one"], 1, seed=0)[0]
    here, elsewhere = frozenset(["models/one.py:1"]), frozenset(["models/one.py:11", "models/two.py:1"])
    slow, quick, other = Reach("slow", LONGEST, here), Reach("quick", 0.1, here), Reach("other", 0.2, elsewhere)
    last = Reach("last", LONGEST + 1, here)
    assert asked_about(mutant, [last, slow, other, quick]) == [quick, slow]
