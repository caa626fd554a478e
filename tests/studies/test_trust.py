"""Strangers' files: nothing runs that was not asked for, and nothing that is missing goes unsaid."""

import json
import os
import pickle
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backcast.studies import check_study, load
from backcast.studies.engines.on_slurm import SlurmEngine
from backcast.studies.runner import run_study
from backcast.studies.sealing import seal
from backcast.studies.store import Store
from backcast.studies.units import world_of
from commands import a_command_line  # noqa: F401  a fixture

STUDY = {
    "name": "small",
    "episodes": 3,
    "seeds": 4,
    "worlds": [{"kind": "gymnasium", "id": "FrozenLake-v1", "max_steps": 20}],
    "agents": [{"kind": "q"}],
    "grid": {"alpha": [0.5, 0.9]},
}
READING = ("export", "report", "claims", "best", "verify")


@pytest.fixture
def results(tmp_path):
    """A directory of results, two agents in a Gymnasium table."""
    store = Store(tmp_path / "results", create=True)
    run_study(store, check_study(STUDY, "test"))
    return store.directory


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module that leaves a trace when it is imported; the path of the trace."""
    trace = tmp_path / "sprung"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "trap.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    yield trace
    sys.modules.pop("trap", None)


def command(name, results, tmp_path):
    return [name, results, *(["--to", tmp_path / "t.csv"] if name == "export" else [])]


@pytest.fixture
def poisoned(tmp_path, trap):
    """A directory of results of a study that imports a module; it was run by somebody else."""
    store = Store(tmp_path / "poisoned", create=True)
    worlds = [{**STUDY["worlds"][0], "id": "trap:FrozenLake-v1"}]
    run_study(store, check_study({**STUDY, "worlds": worlds}, "test"))
    trap.unlink()
    del sys.modules["trap"]
    return store.directory


def as_before(results):
    """Write the study and the records as version 0.1 did."""
    path = results / "studies" / "small.json"
    path.write_text(json.dumps(json.loads(path.read_text())["study"]))
    for path in (results / "units").glob("*.json"):
        record = json.loads(path.read_text())
        path.write_text(json.dumps({name: record[name] for name in ("finished", "machine", "units")}))


# ----------------------------------------------------------------------------------------------------------------------
# code that nobody asked for


def test_a_dry_run_imports_nothing_and_says_what_it_did_not_check(tmp_path, cli, trap):
    (tmp_path / "s.toml").write_text(
        'episodes = 1\nseeds = 2\n[[worlds]]\nkind = "gymnasium"\nid = "trap:FrozenLake-v1"\n[[agents]]\nkind = "q"\n'
    )
    code, told, _ = cli("sweep", tmp_path / "s.toml", "--dry-run", "--out", tmp_path / "r")
    assert (code, trap.exists()) == (0, False)
    assert "2 runs, of which 2 are to be made" in told
    assert (
        "not checked: worlds.0: 'trap:FrozenLake-v1' was not looked at, as that would import the module 'trap'" in told
    )
    assert cli("sweep", tmp_path / "s.toml", "--quiet", "--out", tmp_path / "r")[0] == 0
    assert trap.exists()  # the user named the file


@pytest.mark.parametrize("name", READING)
def test_reading_results_imports_nothing(tmp_path, cli, trap, poisoned, name):
    for written in (lambda _: None, as_before):
        written(poisoned)
        code, _, complaint = cli(*command(name, poisoned, tmp_path))
        assert (code, "missing" in complaint, trap.exists()) == (0, False, False)


def test_reading_results_makes_no_world(tmp_path, cli, results, monkeypatch):
    monkeypatch.setattr("gymnasium.make", lambda *_, **__: pytest.fail("an environment was made"))
    for name in READING:
        code, _, complaint = cli(*command(name, results, tmp_path))
        assert (code, "missing" in complaint) == (0, False), name


def test_results_are_continued_but_import_only_what_is_allowed(cli, trap, poisoned):
    next((poisoned / "units").glob("*.json")).unlink()
    code, _, complaint = cli("sweep", poisoned, "--quiet")
    assert (code, trap.exists()) == (2, False)
    assert "small: worlds.0 would import the module 'trap', which may run anything" in complaint
    assert complaint.rstrip().endswith("add --allow-import trap")
    assert cli("sweep", poisoned, "--quiet", "--allow-import", "other")[0] == 2
    assert cli("sweep", poisoned, "--dry-run")[0] == 0
    assert not trap.exists()
    world_of.cache_clear()
    assert cli("sweep", poisoned, "--quiet", "--allow-import", "trap")[0] == 0
    assert trap.exists()


def test_a_directory_is_continued_with_as_many_seeds_as_were_asked_for(tmp_path, cli, results):
    assert cli("sweep", results, "--quiet", "--seeds", 6)[0] == 0
    for path in (results / "units").glob("*"):
        path.unlink()
    code, told, _ = cli("sweep", results, "--dry-run")
    assert (code, told.splitlines()[0].endswith("6 seeds: 12 runs, of which 12 are to be made")) == (0, True)
    code, _, complaint = cli("sweep", results, "--out", tmp_path / "elsewhere")
    assert (code, "is continued where it is" in complaint) == (2, True)


class Bomb:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


def test_results_of_jobs_that_came_with_a_directory_are_not_unpickled(tmp_path, results):
    jobs, trace = results / "jobs" / "local", tmp_path / "sprung"
    jobs.mkdir(parents=True)
    for name in ("7_submitted.pkl", "7_0_result.pkl"):
        (jobs / name).write_bytes(pickle.dumps(("success", Bomb(trace))))
    store = Store(results)
    run_study(store, check_study(STUDY, "test"), seeds=5, engine=SlurmEngine(store, jobs=1, local=True))
    assert not trace.exists()
    assert list(jobs.glob("7_*")) == []


# ----------------------------------------------------------------------------------------------------------------------
# files that are not what they should be


def test_hidden_files_are_nobodys_studies(tmp_path, cli, results):
    (results / "studies" / ".small.json").write_text("{")
    (results / "units" / ".small.json").write_text("{")
    assert cli("claims", results)[0] == 0


@pytest.mark.parametrize("option", [["sweep", "s.toml", "--out", ""], ["sweep", " "], ["export", "", "--to", "t.csv"]])
def test_an_empty_path_means_nothing(tmp_path, cli, option, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, complaint = cli(*option)
    assert (code, list(tmp_path.iterdir())) == (2, [])
    assert "it is empty; expected a path" in complaint


def test_a_fifo_among_the_results_is_refused_and_not_waited_for(tmp_path, cli, results):
    record = next((results / "units").glob("*.json"))
    for path in (record, record.with_suffix(".parquet"), results / "studies" / "small.json"):
        kept = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        code, _, complaint = cli("export", results, "--to", tmp_path / "t.csv")
        assert (code, f"{path}: a FIFO, expected a regular file" in complaint) == (2, True)
        path.unlink()
        path.write_bytes(kept)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[" * 200_000, "not valid JSON (maximum recursion depth"),
        ("{}", "a record that cannot be understood ('seeds' is missing)"),
        ("[]", "not a record"),
        ('{"units": [{"seeds": [1' + "0" * 5000 + "]}]}", "not valid JSON"),
        ('{"units": 7}', "a record that cannot be understood"),
        ('{"format": 3, "units": []}', "format 3, this Backcast reads 1 to 2; get a newer version"),
        ('{"format": "x"}', "format 'x'"),
        ("\udcff", "not valid JSON"),
    ],
)
def test_a_record_that_cannot_be_used_is_named_once(cli, results, content, words):
    path = next((results / "units").glob("*.json"))
    path.write_bytes(content.encode(errors="surrogateescape"))
    for name in ("claims", "best"):
        code, _, complaint = cli(name, results)
        assert (code, complaint.count(str(path)), complaint.count("\n")) == (2, 1, 1)
        assert words in complaint
        assert "InputError" not in complaint


def unsealed(path):
    return {name: value for name, value in json.loads(path.read_text()).items() if name != "sha256"}


def changed(record, change):
    change(record["units"][0])
    return record


@pytest.mark.parametrize(
    "change",
    [
        lambda unit: unit.update(seeds=[0.5, 1, 2, 3]),
        lambda unit: unit.update(seeds="0123"),
        lambda unit: unit.update(seeds=[-1, 1, 2, 3]),
        lambda unit: unit.update(run_seconds=[1.0]),
        lambda unit: unit.update(run_seconds=["a"] * 4),
        lambda unit: unit.update(value_updates=None),
        lambda unit: unit.update(group=["a"]),
        lambda unit: unit.update(episodes=0),
        lambda unit: unit.update(diverged=[10**30] * 4),
        lambda unit: unit.update(diverged=[[1], [2], [3], [4]]),
    ],
)
def test_a_record_of_wrong_types_is_named(cli, results, change):
    path = next((results / "units").glob("*.json"))
    path.write_text(seal(json.dumps(changed(unsealed(path), change))))
    code, _, complaint = cli("claims", results)
    assert (code, complaint.count("\n")) == (2, 1)
    assert f"{path}: a record that cannot be understood" in complaint


# ----------------------------------------------------------------------------------------------------------------------
# what is missing is said


def one_of_the_records(results):
    return max((results / "units").glob("*.json"), key=lambda path: path.name)


def test_a_missing_record_is_missing_runs_and_they_are_counted(tmp_path, cli, results):
    record = one_of_the_records(results)
    lost = sum(len(unit["seeds"]) for unit in json.loads(record.read_text())["units"])
    record.unlink()
    sentence = f"backcast: small: {lost} of 8 runs are missing"
    code, told, complaint = cli("export", results, "--to", tmp_path / "t.csv")
    assert (code, complaint.splitlines()[0].startswith(sentence)) == (0, True)
    assert told.endswith(f": {2 * 3 * (8 - lost)} rows\n")
    for name in ("report", "claims", "best"):
        code, _, complaint = cli(name, results)
        assert sentence in complaint, name


def test_json_says_how_many_runs_are_missing(tmp_path, cli):
    store = Store(tmp_path / "r", create=True)
    study = check_study({**STUDY, "worlds": [{"kind": "maze", "text": "S.G"}]}, "test")
    run_study(store, study, seeds=3)
    assert [each["missing_runs"] for each in json.loads(cli("best", store.directory, "--json")[1])] == [0]
    store.add_study(study, 5)
    code, told, complaint = cli("best", store.directory, "--json")
    assert [each["missing_runs"] for each in json.loads(told)] == [4]
    assert (code, complaint) == (0, "backcast: small: 4 of 10 runs are missing\n")


def test_a_missing_column_drops_nothing_silently(tmp_path, cli, results):
    as_before(results)  # there is no checksum that would tell
    table = one_of_the_records(results).with_suffix(".parquet")
    pq.write_table(pq.read_table(table).drop_columns(["reward"]), table)
    for name in ("export", "report", "best"):
        code, _, complaint = cli(*command(name, results, tmp_path))
        assert (code, f"{table}: the column 'reward' is missing; remove {table.stem}.json" in complaint) == (2, True), (
            name
        )
    code, told, _ = cli("verify", results)
    assert (code, f"{table}: the column 'reward' is missing" in told) == (1, True)


def test_a_missing_row_is_no_other_run(tmp_path, cli, results):
    as_before(results)
    table = one_of_the_records(results).with_suffix(".parquet")
    pq.write_table(pq.read_table(table).slice(3), table)
    code, _, complaint = cli("export", results, "--to", tmp_path / "t.csv")
    assert (code, "rows, but its record has" in complaint) == (2, True)


def test_what_is_whole_is_verified(cli, results):
    code, told, complaint = cli("verify", results)
    files = len(list((results / "units").glob("*.json")))
    assert (code, told, complaint) == (0, f"{files:,} files with 8 runs are whole, 0 are not\n", "")
    found = json.loads(cli("verify", results, "--json")[1])
    assert (found["files"], found["runs"], found["damaged"], found["unchecked"]) == (files, 8, [], 0)


def other_values(table):
    whole = pq.read_table(table)
    place = whole.column_names.index("reward")
    pq.write_table(whole.set_column(place, "reward", pa.array([0.25] * len(whole))), table)


def edited(change):
    def edit(table):
        record = table.with_suffix(".json")
        record.write_text(json.dumps(changed(unsealed(record), change)))

    return edit


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda table: table.unlink(), "damaged or missing"),
        (lambda table: table.write_bytes(table.read_bytes()[:-1]), "it was changed after it was written"),
        (lambda table: table.write_bytes(table.read_bytes() + b"\0"), "it was changed after it was written"),
        (other_values, "it was changed after it was written"),
        (
            edited(lambda unit: unit["agent"].update(alpha=0.1)),
            "it was changed after it was written, its checksum differs",
        ),
        (
            edited(lambda unit: unit.update(seeds=[9, 8, 7, 6])),
            "it was changed after it was written, its checksum differs",
        ),
    ],
)
def test_what_is_damaged_is_named_and_can_be_run_again(cli, results, damage, words):
    table = one_of_the_records(results).with_suffix(".parquet")
    damage(table)
    code, told, _ = cli("verify", results)
    assert (code, words in told, str(table.parent) in told) == (1, True, True)
    assert told.splitlines()[-1].startswith("to run damaged units again: move these records away, then backcast sweep")
    assert json.loads(cli("verify", results, "--json")[1])["damaged"][0]["path"] == str(table.with_suffix(".json"))
    table.with_suffix(".json").unlink()
    assert cli("verify", results)[0] == 0
    assert cli("sweep", results, "--quiet")[0] == 0
    assert "8 runs are whole, 0 are not" in cli("verify", results)[1]


def test_a_flipped_bit_is_found_wherever_it_is(cli, results):
    table = one_of_the_records(results).with_suffix(".parquet")
    whole = table.read_bytes()
    for place in range(0, len(whole), 97):
        table.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert cli("verify", results)[0] == 1, place


def test_results_of_version_0_1_are_read_and_verified(tmp_path, cli, results):
    new = cli("export", results, "--to", tmp_path / "new.csv")
    as_before(results)
    old = cli("export", results, "--to", tmp_path / "old.csv")
    assert (old[0], old[2]) == (0, "")
    assert (tmp_path / "old.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()
    assert new[1].partition(":")[2] == old[1].partition(":")[2]
    assert "without a checksum, by an older version" in cli("verify", results)[1]
    table = one_of_the_records(results).with_suffix(".parquet")
    pq.write_table(pq.read_table(table).sort_by([("seed", "descending"), ("episode", "ascending")]), table)
    code, told, _ = cli("verify", results)
    assert (code, "its rows do not match its record (column 'seed')" in told) == (1, True)


def test_runs_of_no_study_are_not_left_out_silently(tmp_path, cli, results):
    (results / "studies" / "small.json").unlink()
    code, told, complaint = cli("export", results, "--to", tmp_path / "t.csv")
    assert (code, told.endswith(": 0 rows\n")) == (0, True)
    assert f"8 runs in {results} belong to none of its studies as they are now, and are left out" in complaint


def test_loading_what_is_not_complete_warns(tmp_path):
    store = Store(tmp_path / "r", create=True)
    study = check_study({**STUDY, "worlds": [{"kind": "maze", "text": "S.G"}]}, "test")
    run_study(store, study, seeds=3)
    assert len(load(store.directory)) == 2 * 3 * 3 * 2
    store.add_study(study, 5)
    with pytest.warns(UserWarning, match="small: 4 of 10 runs are missing"):
        load(store.directory)


def test_a_run_that_is_over_soon_is_stored_in_little(tmp_path):
    given = {**STUDY, "episodes": 1_000_000, "updates": 100, "seeds": 1, "grid": {}}
    store = Store(tmp_path / "r", create=True)
    run_study(store, check_study({**given, "worlds": [{"kind": "maze", "text": "S.G"}]}, "test"))
    (table,) = (tmp_path / "r" / "units").glob("*.parquet")
    assert pq.read_metadata(table).num_rows == 1_000_000
    assert table.stat().st_size < 30_000
