"""Files that are damaged, forged or hostile: every command answers with an exit code and a sentence, never a traceback.

Each case begins with a directory of whole results, or a study, and does something to one file of it. What is exported
is then what it was, or it is said what is missing, or nothing is exported.
"""

import copy
import json
import os
import random
import resource
import shutil
import time
from collections import Counter

from backcast.studies import check_study
from backcast.studies.runner import run_study
from backcast.studies.store import Store
from commands import a_command_line  # noqa: F401  a fixture

CASES = int(os.environ.get("BACKCAST_CASES", "2000"))
HOSTILE = [
    None,
    True,
    -1,
    0,
    0.5,
    1e308,
    2**70,
    "",
    "x" * 10_000,
    [],
    {},
    [[[[]]]],
    {"": {"": ""}},
    float("nan"),
    "\ud800",
]
STUDY = {
    "name": "small",
    "episodes": 3,
    "seeds": 4,
    "worlds": [{"kind": "maze", "text": "S.G"}, {"kind": "chain", "levels": [4, 2], "seed": 1}],
    "agents": [{"kind": "q", "only": "control"}, {"kind": "td", "only": "prediction"}],
    "grid": {"alpha": [0.5, 0.9]},
}
TOML = """episodes = 3
seeds = 4
[[worlds]]
kind = "maze"
text = "S.G"
[[agents]]
kind = "forward"
model = "counts"
horizon = 2
[grid]
alpha = [0.5, 0.9]
[search]
samples = 3
alpha_model = { low = 0.01, high = 1.0, scale = "log" }
"""
WORDS = [
    "[",
    "]",
    "{",
    "}",
    "=",
    '"',
    "\n",
    "9" * 400,
    "-",
    ".",
    "inf",
    "nan",
    "true",
    "'''",
    "\\u0000",
    "[[",
    "e9",
    "#",
]
WORDS += [
    "episodes",
    "seeds",
    "worlds",
    "agents",
    "kind",
    "id",
    "gymnasium",
    "features",
    "option",
    "lam",
    "grid",
    "text",
]


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def test_damaged_results(tmp_path, cli, tell):
    whole = tmp_path / "whole"
    run_study(Store(whole, create=True), check_study(STUDY, "test"))
    assert cli("export", whole, "--to", tmp_path / "whole.csv")[0] == 0
    table = (tmp_path / "whole.csv").read_bytes()
    rng, answers, found, before, began = random.Random(0), Counter(), Counter(), peak(), time.monotonic()
    for case in range(CASES):
        shutil.rmtree(tmp_path / "r", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "r")
        damage = rng.choice(DAMAGES)
        path = rng.choice(sorted(path for path in (tmp_path / "r").glob("*/*") if path.suffix in (".json", ".parquet")))
        damage(path, rng)
        (tmp_path / "t.csv").unlink(missing_ok=True)
        code, _, complaint = cli("export", tmp_path / "r", "--to", tmp_path / "t.csv")
        where = f"case {case}: {damage.__name__} of {path}: {complaint}"
        answers[code] += 1
        assert code in (0, 2), where
        assert len(complaint) < 4000, where
        if code == 2:
            assert all(line.startswith("backcast: ") for line in complaint.splitlines()), where
            assert not (tmp_path / "t.csv").exists(), where
        elif (tmp_path / "t.csv").read_bytes() != table:
            assert "runs are missing" in complaint or "are left out" in complaint, where
            found["fewer"] += 1
        command = rng.choice((["claims"], ["best"], ["best", "--json"], ["verify"], ["verify", "--json"], ["report"]))
        code, _, complaint = cli(command[0], tmp_path / "r", *command[1:])
        assert code in ((0, 1, 2) if command[0] == "verify" else (0, 2)), f"{where}; {command}: {complaint}"
    tell(
        "results",
        f"{CASES:,} damaged or forged files, seed 0, two commands each ({time.monotonic() - began:.0f} s)",
        f"exit 0: {answers[0]:,}, of which {found['fewer']} with fewer rows and said so; exit 2: {answers[2]:,};"
        f" other rows, or fewer without a word: 0; memory +{peak() - before} MB",
    )


def flip(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def cut(path, rng):
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def remove(path, rng):
    path.unlink()


def swell(path, rng):
    content = path.read_bytes()
    place = rng.randrange(len(content))
    path.write_bytes(content[:place] + rng.randbytes(rng.randrange(1, 5000)) + content[place:])


def exchange(path, rng):
    other = rng.choice(sorted(path.parent.glob(f"*{path.suffix}")))
    path.write_bytes(other.read_bytes())


def forge(path, rng):
    """Exchange a value anywhere in a record or a study for something else."""
    if path.suffix != ".json":
        return flip(path, rng)
    record = json.loads(path.read_text())
    places = list(_places(record))
    owner, key = rng.choice(places)
    owner[key] = copy.deepcopy(rng.choice([*HOSTILE, rng.choice(places)[0]]))
    path.write_text(json.dumps(record, ensure_ascii=True))
    return None


def nest(path, rng):
    path.write_text(rng.choice("[{") * rng.choice((10, 1000, 100_000)))


def special(path, rng):
    path.unlink()
    rng.choice(
        (lambda: os.mkfifo(path), path.mkdir, lambda: path.symlink_to(path), lambda: path.symlink_to("/dev/zero"))
    )()


DAMAGES = (flip, flip, cut, remove, swell, exchange, forge, forge, forge, nest, special)


def _places(thing):
    """Every place in nested lists and dictionaries."""
    items = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    for key, value in items:
        yield thing, key
        yield from _places(value)


def test_hostile_studies(tmp_path, cli, tell, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, answers, before, slowest, began = random.Random(0), Counter(), peak(), 0.0, time.monotonic()
    for case in range(CASES):
        text = TOML
        for _ in range(rng.choice((1, 1, 2, 3))):
            text = rng.choice(EDITS)(text, rng)
        (tmp_path / "s.toml").write_bytes(text.encode(errors="surrogatepass"))
        started = time.monotonic()
        code, _, complaint = cli("sweep", "s.toml", "--dry-run", "--out", "r")
        slowest = max(slowest, time.monotonic() - started)
        answers[code] += 1
        assert code in (0, 2), f"case {case}: {complaint}\n{text}"
        assert len(complaint) < 8000, f"case {case}: {complaint}"
    tell(
        "studies",
        f"{CASES:,} mutated TOML files, seed 0, dry runs ({time.monotonic() - began:.0f} s)",
        f"described: {answers[0]:,}, refused: {answers[2]:,}; slowest {slowest:.2f} s, memory +{peak() - before} MB",
    )


def _insert(text, rng):
    place = rng.randrange(len(text))
    return text[:place] + rng.choice(WORDS) + text[place:]


def _delete(text, rng):
    place = rng.randrange(len(text))
    return text[:place] + text[place + rng.randrange(1, 20) :]


def _repeat(text, rng):
    lines = text.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    return "".join(lines[:place] + lines[place : place + 2] * rng.choice((2, 3, 500)) + lines[place:])


def _value(text, rng):
    lines = text.splitlines()
    places = [i for i, line in enumerate(lines) if "=" in line]
    place = rng.choice(places)
    values = [
        "0",
        "-1",
        "1e400",
        "nan",
        "10" * 7,
        '""',
        '"x"',
        "[]",
        "{}",
        "[[1]]",
        "true",
        "1979-05-27",
        "7",
        "1",
        "0.25",
    ]
    values += ["[0.1, 0.2]", '"q"', '"backward"', '"softmax"', "[{ low = 1, high = 2 }]", "{ low = 1, high = 2 }"]
    lines[place] = f"{lines[place].partition('=')[0]} = {rng.choice(values)}"
    return "\n".join(lines)


EDITS = (_insert, _delete, _repeat, _value, _value)
