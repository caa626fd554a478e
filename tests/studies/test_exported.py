"""The exported table: a column for each setting that varies, whatever it is."""

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import backcast as bc
from backcast.studies import check_study, export
from backcast.studies.exported import Varied
from backcast.studies.runner import run_study
from backcast.studies.store import Store

MAZE = {"kind": "maze", "text": "S.G", "max_steps": 20}


def run(directory, **study):
    store = Store(directory, create=True)
    given = {"name": "one", "episodes": 2, "seeds": 1, "worlds": [MAZE], **study}
    run_study(store, check_study(given, "test"))
    return store.directory


def own_columns(table):
    return {name: table[name].to_pylist() for name in table.column_names[7:]}


def test_settings_that_vary_have_columns(tmp_path):
    agents = [{"kind": "q"}, {"kind": "backward", "frame": "previous", "model": "counts"}]
    directory = run(tmp_path / "r", agents=agents, grid={"alpha": [0.5, 1.0], "alpha_model": [0.25, 0.75]})
    table = bc.load(directory)
    assert table.column_names[7:] == ["alpha", "alpha_model"]  # one agent has a frame and a model: they do not vary
    rows = {row["agent"]: (row["alpha"], row["alpha_model"]) for row in table.to_pylist()}
    assert rows == {
        "q,alpha=0.5": (0.5, None),  # it has no model
        "q,alpha=1": (1.0, None),
        **{
            f"backward@previous,model=counts,alpha={alpha:g},alpha_model={model:g}": (alpha, model)
            for alpha in (0.5, 1.0)
            for model in (0.25, 0.75)
        },
    }
    export(directory, tmp_path / "t.csv")
    export(directory, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
    assert pv.read_csv(tmp_path / "t.csv")["alpha_model"].to_pylist() == table["alpha_model"].to_pylist()


@pytest.mark.interpreted
def test_studies_of_a_directory_share_the_columns(tmp_path):
    directory = run(tmp_path / "r", agents=[{"kind": "backward", "horizon": n} for n in (1, 3)])
    run(tmp_path / "r", name="two", agents=[{"kind": "q"}], grid={"alpha": [0.5, 1]})
    run(tmp_path / "r", name="three", agents=[{"kind": kind, "alpha": 0.25} for kind in ("forward", "monte-carlo")])
    table = bc.load(directory)
    rows = {row["agent"]: (row["study"], row["alpha"], row["horizon"]) for row in table.to_pylist()}
    assert rows == {
        "backward,horizon=1": ("one", 1.0, 1),
        "backward,horizon=3": ("one", 1.0, 3),
        "q,alpha=0.5": ("two", 0.5, 1),
        "q,alpha=1": ("two", 1.0, 1),
        "forward": ("three", 0.25, 1),
        "monte-carlo": ("three", 0.25, None),
    }


def test_what_was_not_given_is_there_as_its_default():
    agents = [bc.agent("dyna"), bc.agent("dyna", sample=10, alpha_plan=0.5), bc.agent("backward", lam=0.5)]
    agents += [bc.agent("backward", frame="previous", horizon=2), bc.agent("forward")]
    columns = {name: column.to_pylist() for name, column in Varied([agents]).columns(agents, [1] * 5).items()}
    assert columns == {
        "sample": [5, 10, None, None, None],
        "alpha_plan": [1.0, 0.5, 1.0, 1.0, 1.0],
        "lam": [None, None, 0.5, None, None],
        "horizon": [None, None, None, 2, 1],
        "frame": [None, None, "current", "previous", "previous"],
    }


def test_an_agent_that_is_given_the_default_does_not_differ():
    assert Varied([[bc.agent("dyna"), bc.agent("dyna", sample=5)]]).schema.names[7:] == []


def test_agents_that_do_not_differ_in_settings_have_no_more_columns(tmp_path):
    assert bc.load(run(tmp_path / "r", agents=[{"kind": "q"}, {"kind": "backward"}])).num_columns == 7


def test_values_have_the_simplest_type_that_holds_them_all():
    agents = [
        bc.agent("backward", sample=2, importance=True, alpha=[0.5, 0.25], model="counts"),
        bc.agent("backward", sample=3, importance=False, alpha=1.0, model="softmax", lam=0.5),
        bc.agent("backward", lam=[0.5, 0.75]),
    ]
    varied = Varied([agents])
    types = dict(zip(varied.schema.names[7:], varied.schema.types[7:], strict=True))
    text = pa.string()
    assert types == dict(alpha=text, importance=pa.bool_(), lam=text, model=text, sample=pa.int64())
    columns = {name: column.to_pylist() for name, column in varied.columns(agents, [1, 1, 2]).items()}
    assert columns["alpha"] == ["0.5-0.25", "1", "1", "1"]
    assert columns["lam"] == [None, "0.5", "0.5-0.75", "0.5-0.75"]
    assert columns["sample"] == [2, 3, None, None]
