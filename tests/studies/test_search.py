import json
import subprocess
import sys
import textwrap
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.agents.settings import COMMON, SETTINGS
from backcast.studies import check_study, read_study
from backcast.studies.search import DIGITS, Range, Space, edge, takes

MAZE = {"kind": "maze", "text": "S.G"}
LOG = {"low": 0.01, "high": 1.0, "scale": "log"}
NAN, INF = float("nan"), float("inf")


def study(**given):
    whole = {"name": "s", "episodes": 5, "worlds": [MAZE], "agents": [{"kind": "forward"}, {"kind": "q"}], **given}
    return check_study(whole, "s.toml")


def labels(**given):
    return [cell.label for cell in study(**given).runs()]


# grids


def test_a_grid_takes_any_setting_and_cells_say_their_base_and_point():
    cells = study(
        agents=[{"kind": "backward", "model": "counts"}], grid={"horizon": [1, 3], "frame": ["current"]}
    ).runs()
    assert [cell.label for cell in cells] == [
        "backward,model=counts,horizon=1,frame=current",
        "backward,model=counts,horizon=3,frame=current",
    ]
    assert [cell.base for cell in cells] == 2 * ["backward,model=counts"]
    assert cells[1].point == (("horizon", 3), ("frame", "current"))
    assert (cells[1].agent.get("horizon"), cells[1].agent.frame) == (3, "current")
    assert len({hash(cell.point) for cell in cells}) == 2


def test_words_switches_schedules_and_features():
    agents = [{"kind": "backward", "label": "mine"}]
    grid = {
        "model": ["softmax", "counts"],
        "importance": [True],
        "schedule": ["constant"],
        "learn": [False],
        "forget": [0, 0.5],
    }
    cells = study(agents=agents, grid=grid).runs()
    assert [cell.label for cell in cells] == [
        f"mine,model={model},importance=true,schedule=constant,learn=false,forget={forget}"
        for model in ("softmax", "counts")
        for forget in ("0", "0.5")
    ]
    assert cells[0].agent == bc.agent(
        "backward", learn=False, schedule="constant", model="softmax", importance=True, forget=0
    )
    tiles = {"kind": "tiles", "bins": 3}
    assert labels(agents=[{"kind": "q"}], grid={"features": ["onehot", tiles]}) == [
        "q,features=onehot",
        "q,features=tiles-8x3",
    ]


def test_a_searched_setting_takes_the_place_of_the_agents_own():
    cells = study(
        agents=[{"kind": "forward", "frame": "current", "model": "counts"}], grid={"model": ["softmax"]}
    ).runs()
    assert [cell.label for cell in cells] == ["forward@current,model=softmax"]
    assert cells[0].agent.name == "forward@current,model=softmax"
    pure = study(agents=[{"kind": "forward", "learn": False}], grid={"learn": [True]}).runs()[0]
    assert (pure.base, pure.label, pure.agent.learn) == ("pure:forward", "pure:forward,learn=true", True)


def test_the_numbers_of_a_cell_are_determined_as_ever():
    """Records of results hold a hash of this: whole numbers in the file are the same rates."""
    cells = study(grid={"alpha": [1, 0.5], "alpha_model": [0.5]}).runs()
    assert cells[1].identity() == {
        "results": 3,
        "world": {"kind": "maze", "text": "S.G"},
        "agent": {
            "kind": "forward", "frame": None, "learn": True, "alpha": 0.5, "alpha_model": 0.5, "alpha_plan": None,
            "epsilon": 0.5, "schedule": "linear", "settings": (),
        },
        "episodes": 5,
    }  # fmt: skip
    assert json.dumps(cells[0].identity()["agent"]["alpha"]) == "1.0"


def test_a_schedule_of_epsilon_counts_if_it_was_given():
    """Results from before there was one are known by the same hash."""
    cells = study(agents=[{"kind": "q"}], grid={"schedule": ["average"], "epsilon_schedule": ["linear"]}).runs()
    assert [cell.label for cell in cells] == ["q,schedule=average,epsilon_schedule=linear"]
    assert cells[0].identity()["agent"]["epsilon_schedule"] == "linear"
    assert cells[0].agent == bc.agent("q", schedule="average", epsilon_schedule="linear")
    assert "epsilon_schedule" not in study(agents=[{"kind": "q"}]).runs()[0].identity()["agent"]


def test_settings_go_to_the_agents_that_have_them():
    grid = {"alpha": [1.0, 0.1], "alpha_model": [1.0, 0.5], "alpha_plan": [0.2], "epsilon": [0.3]}
    worlds = [MAZE, {"kind": "chain", "levels": [3, 2]}]
    agents = [{"kind": kind} for kind in ("forward", "true-forward")]
    agents += [{"kind": "td", "only": "prediction"}, {"kind": "q", "only": "control"}]
    found = labels(worlds=worlds, agents=agents, grid=grid)
    assert Counter(label.partition(",")[0] for label in found) == {"forward": 8, "true-forward": 4, "td": 2, "q": 2}
    assert "true-forward,alpha=1,alpha_plan=0.2,epsilon=0.3" in found
    assert "td,alpha=0.1" in found
    assert "q,alpha=0.1,epsilon=0.3" in found


def test_every_kind_has_the_settings_that_make_a_difference_to_it():
    for kind in KINDS:
        assert {"alpha", "schedule", *KINDS[kind].settings} <= set(takes(kind))
    assert ("frame" in takes("backward"), "frame" in takes("dyna"), "learn" in takes("td")) == (True, False, False)
    assert not {"epsilon", "epsilon_schedule"} & {*takes("forward", only="prediction"), *takes("td")}
    assert {"epsilon", "epsilon_schedule"} <= set(takes("q"))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not KINDS[kind].learns_model])
def test_kinds_without_a_step_size_of_their_model_do_not_feel_it(kind):
    world = bc.worlds.chain((4, 3, 2), seed=0) if KINDS[kind].only == "prediction" else bc.worlds.maze("S..\n.X.\n..G")
    runs = [bc.run(world, bc.agent(kind, alpha_model=rate), 4, 2) for rate in (1.0, 0.1)]
    np.testing.assert_array_equal(runs[0].steps if runs[0].rmsve is None else runs[0].rmsve,
                                  runs[1].steps if runs[1].rmsve is None else runs[1].rmsve)  # fmt: skip


def test_agents_add_to_the_studys_tables_and_replace_what_is_in_them():
    agents = [
        {"kind": "forward", "grid": {"horizon": [1, 2]}},
        {"kind": "q", "grid": {"alpha": [0.3]}},
        {"kind": "backward", "search": {"alpha": [0.7], "samples": 3}},
    ]
    assert labels(agents=agents, grid={"alpha": [1.0]}) == [
        "forward,alpha=1,horizon=1",
        "forward,alpha=1,horizon=2",
        "q,alpha=0.3",
        "backward,alpha=0.7",
    ]
    drawn = study(
        agents=[*agents[:1], {"kind": "q", "search": {"samples": 2, "seed": 1}}], search={"alpha": LOG}
    ).runs()
    assert Counter(cell.base for cell in drawn) == {"forward": 60, "q": 2}
    assert {dict(c.point)["alpha"] for c in drawn[60:]}.isdisjoint(dict(c.point)["alpha"] for c in drawn[:60])


# random search


def test_samples_of_a_search_are_these():
    """Pinned: who adds samples next year must get the same first ones."""
    alphas = ["0.03219", "0.2285", "0.07727", "0.1006", "0.3458"]
    found = labels(search={"samples": 5, "alpha": LOG})
    assert found == [f"{kind},alpha={alpha}" for kind in ("forward", "q") for alpha in alphas]


def test_a_grid_and_a_search_make_every_combination():
    found = labels(agents=[{"kind": "q"}], grid={"epsilon": [0.1, 0.2]}, search={"samples": 2, "alpha": LOG})
    assert found == [f"q,epsilon={e},alpha={a}" for e in ("0.1", "0.2") for a in ("0.03219", "0.2285")]


def test_an_agent_without_a_setting_shares_the_other_samples_of_those_with_it():
    cells = study(search={"samples": 10, "alpha": LOG, "alpha_model": LOG}).runs()
    forward, q = ([dict(cell.point) for cell in cells if cell.base == base] for base in ("forward", "q"))
    assert [point["alpha"] for point in forward] == [point["alpha"] for point in q]
    assert all("alpha_model" not in point for point in q)
    assert [p["alpha"] for p in forward] != [p["alpha_model"] for p in forward]


def test_duplicates_are_dropped():
    found = labels(agents=[{"kind": "backward"}], search={"samples": 50, "horizon": {"low": 1, "high": 3}})
    assert sorted(found) == [f"backward,horizon={n}" for n in (1, 2, 3)]


def test_the_draws_do_not_depend_on_the_process(tmp_path):
    table = """
    name = "s"
    episodes = 5
    worlds = [{ kind = "maze" }]
    agents = [{ kind = "forward" }]
    [search]
    samples = 4
    alpha = { low = 0.01, high = 1.0, scale = "log" }
    model = ["softmax", "counts"]
    """
    (tmp_path / "s.toml").write_text(textwrap.dedent(table))
    code = (
        "import sys; from backcast.studies import read_study; print([c.label for c in read_study(sys.argv[1]).runs()])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s.toml")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}).stdout
    assert found.strip() == str([cell.label for cell in read_study(tmp_path / "s.toml").runs()])


ranges = st.one_of(
    st.tuples(st.floats(1e-6, 1.0), st.floats(1.0, 1e3), st.sampled_from(["linear", "log"])),
    st.tuples(st.integers(1, 5000), st.integers(1, 5000), st.sampled_from(["linear", "log"])),
).map(lambda t: (min(t[:2]), max(t[:2]), t[2])).filter(lambda t: t[0] < t[1])  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(ranges, st.integers(0, 2**40), st.integers(1, 40), st.integers(0, 40))
def test_properties_of_draws(bounds, seed, samples, more):
    """Inside the range, short, the same whatever else is drawn, and more samples begin with the same ones."""
    low, high, scale = bounds
    whole = isinstance(low, int)
    source, name = Range(low=low, high=high, scale=scale), "buffer" if whole else "bonus"
    spaces = {"drawn": {name: source}, "table": SETTINGS, "seed": seed}
    values = [dict(point)[name] for point in Space(**spaces, samples=samples).points()]
    assert all(low <= value <= high for value in values)
    assert all(isinstance(value, int if whole else float) for value in values)
    assert all(float(f"{value:.{DIGITS}g}") == value for value in values if value not in (low, high))
    longer = [dict(point)[name] for point in Space(**spaces, samples=samples + more).points()]
    assert longer[: len(values)] == values
    both = {"exponent": Range(low=0.0, high=1.0), name: source}
    for order in (both, dict(reversed(both.items()))):
        together = [dict(point)[name] for point in Space(**{**spaces, "drawn": order}, samples=samples).points()]
        assert list(dict.fromkeys(together)) == values


@pytest.mark.parametrize(
    ("source", "whole", "middle"),
    [
        (Range(low=0.0, high=1.0), False, 0.5),
        (Range(low=0.01, high=1.0, scale="log"), False, 0.1),
        (Range(low=1, high=99, scale="log"), True, 10),
        (Range(low=1, high=4), True, 3),
    ],
)
def test_draws_are_spread_evenly_on_their_scale(source, whole, middle):
    chances = ((np.arange(1000) + 0.5) / 1000).tolist()
    drawn = source.draw(chances, whole)
    assert sum(value < middle for value in drawn) == 500
    if (source.low, source.high) == (1, 4):
        assert Counter(drawn) == {1: 250, 2: 250, 3: 250, 4: 250}


def test_rounding_does_not_lead_out_of_the_range():
    assert Range(low=0.5, high=0.99996).draw([0.99999], False) == [0.99996]
    assert Range(low=0.12344, high=1.0).draw([0.0], False) == [0.12344]
    assert Range(low=1, high=12346).draw([0.5, 0.99999], True) == [6174, 12346]


def test_choices_are_equally_likely():
    found = Space(drawn={"alpha": [0.1, 0.2]}, samples=1).points() + Space(drawn={"alpha": [0.1]}, samples=9).points()
    assert found[1:] == [(("alpha", 0.1),)]
    chosen = [Space(drawn={"alpha": [0.1, 0.2]}, samples=1, seed=seed).points()[0] for seed in range(400)]
    assert 160 < chosen.count((("alpha", 0.1),)) < 240


# refusals


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"grid": {"alpha": [1.0, 5.0]}}, r"s\.toml: grid\.alpha: 5\.0 given, expected a step size in \(0, 1\]"),
        ({"grid": {"alpha": [0.0]}}, r"grid\.alpha: 0\.0 given, expected a step size"),
        ({"grid": {"alpha": ["much"]}}, r'grid\.alpha: "much" given, input should be a valid number'),
        ({"grid": {"alpha": [float("nan")]}}, r"grid\.alpha: NaN given, input should be a finite number"),
        ({"grid": {"alpha": []}}, r"grid\.alpha: no values given, expected some"),
        ({"grid": {"frame": ["curent"]}}, r"grid\.frame: \"curent\" given, input should be 'previous' or 'current'"),
        ({"grid": {"model": ["count"]}}, r"grid\.model: 'count' given, expected one of .*did you mean 'counts'\?"),
        ({"grid": {"horizon": [0]}}, r"grid\.horizon: 0 given, expected a whole number, 1 or more"),
        ({"grid": {"seeds": [3]}}, r"grid\.seeds: no agent of the study has this setting; theirs are alpha"),
        ({"grid": {"depth": [2]}}, r"grid\.depth: no agent of the study has this setting; theirs are .*encoder$"),
        ({"grid": {"traces": ["replacing"]}}, r"grid\.traces: no agent of the study has this setting"),
        ({"grid": {"horizon": [2], "lam": [0.5]}}, r"horizon and lam: each of them sets the number of steps"),
        ({"grid": {"alpha": [0.5, 0.5]}}, r"agents: 'forward,alpha=0\.5' is there twice"),
        ({"grid": {"alpha": [0.1, 0.10000001]}}, r"'forward,alpha=0\.1' is there twice, .*; numbers have six digits"),
        ({"agents": 2 * [{"kind": "q"}]}, r"'q' is there twice, and results could not be told apart$"),
        ({"grid": {"alpha": [True]}}, r"s\.toml: grid\.alpha: true given, expected a number$"),
        ({"grid": {"alpha": [[0.5, False]]}}, r"grid\.alpha: false given, expected a number$"),
        ({"grid": {"horizon": [2, True]}}, r"grid\.horizon: true given, expected a number$"),
        ({"grid": {"weights": [[True]]}}, r"grid\.weights: true given, expected a number$"),
        ({"search": {"alpha": [True]}}, r"search\.alpha: true given, expected a number$"),
        ({"search": {"alpha": {"low": 0.1, "high": True}}}, r"search\.alpha\.high: true given, expected a finite num"),
        ({"search": {"alpha": {"low": "a", "high": 1}}}, r'^s\.toml: search\.alpha\.low: "a" given, expected a'),
        ({"search": {"alpha": {"low": NAN, "high": 1}}}, r"^s\.toml: search\.alpha\.low: NaN given, [\w ]+ number$"),
        ({"search": {"alpha": {"low": 1, "high": -INF}}}, r"^s\.toml: search\.alpha\.high: -Infinity given, expected"),
        ({"grid": {"alpha": [1.0]}, "search": {"alpha": [0.5]}}, r"s\.toml: search\.alpha: it is in grid as well"),
        ({"search": {"alfa": [1.0]}}, r"search\.alfa: no agent .*; theirs are .*did you mean 'alpha'\?"),
        ({"search": {"alpha": 0.5}}, r"search\.alpha: 0\.5 given, expected a list of choices, or a range such as"),
        ({"search": {"alpha": []}}, r"search\.alpha: \[\] given, list should have at least 1 item"),
        ({"search": {"alpha": {"low": 0.1}}}, r"search\.alpha\.high: missing"),
        ({"search": {"alpha": {"low": 0.1, "hihg": 1}}}, r"search\.alpha\.hihg: no such key; allowed are low, high"),
        ({"search": {"alpha": {**LOG, "scale": "lgo"}}}, r"search\.alpha\.scale: \"lgo\" given.*did you mean 'log'\?"),
        ({"search": {"alpha": {"low": 1.0, "high": 0.1}}}, r"search\.alpha: .*low must be below high"),
        ({"search": {"alpha": {"low": 0, "high": 1}}}, r"search\.alpha: 0\.0 given, expected a step size"),
        ({"search": {"epsilon": {"low": 0, "high": 1, "scale": "log"}}}, r"search\.epsilon: .*it must be above 0"),
        ({"search": {"model": {"low": 0, "high": 1}}}, r"search\.model: a range given, but it is not a number"),
        ({"search": {"sample": {"low": 1.5, "high": 4}}}, r"search\.sample: 1\.5 given, input should be a valid int"),
        ({"search": {"samples": 0}}, r"search\.samples: 0 given, input should be greater than or equal to 1"),
        ({"search": {"samples": 5}}, r"s\.toml: search\.samples: 5 given, but no setting is there to be drawn$"),
        ({"agents": [{"kind": "q", "search": {"samples": 5}}]}, r"agents\.0\.search\.samples: 5 given, but no setting"),
        ({"search": {"seed": -1}}, r"search\.seed: -1 given, input should be greater than or equal to 0"),
        (
            {"agents": [{"kind": "q", "grid": {"alpha_model": [1.0]}}]},
            r"agents\.0\.grid\.alpha_model: 'q' has no such setting; its own are alpha, .*did you mean 'alpha'\?",
        ),
        ({"agents": [{"kind": "q", "grid": {"alpha": [7]}}]}, r"agents\.0\.grid\.alpha: 7\.0 given, expected a step"),
        ({"agents": [{"kind": "q", "search": {"alpha": 7}}]}, r"agents\.0\.search\.alpha: 7 given, expected a list"),
    ],
)  # fmt: skip
def test_tables_are_refused_with_key_given_and_allowed(tables, message):
    with pytest.raises(bc.InputError, match=message):
        study(**tables)


# edges


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("alpha", 0.01, [0.01, 0.1, 1.0]), "alpha = 0.01 is the smallest value tried: better ones may lie beyond"),
        (("alpha", 0.1, [0.01, 0.1, 1.0]), ""),
        (("alpha", 0.1, [0.1]), ""),
        (("alpha", 1.0, [0.01, 1.0]), "alpha = 1 is the largest value tried, and the largest allowed"),
        (("epsilon", 0.0, [0.0, 0.5]), "epsilon = 0 is the smallest value tried, and the smallest allowed"),
        (("epsilon", 0.5, [0.0, 0.5]), "epsilon = 0.5 is the largest value tried: better ones may lie beyond"),
        (("horizon", 1, [1, 2]), "horizon = 1 is the smallest value tried, and the smallest allowed"),
        (("horizon", 2, [1, 2]), "horizon = 2 is the largest value tried: better ones may lie beyond"),
        (("alpha", 0.012, Range(low=0.01, high=1.0, scale="log")),
         "alpha = 0.012 lies near the end of its range, 0.01: better ones may lie beyond"),
        (("alpha", 0.013, Range(low=0.01, high=1.0, scale="log")), ""),
        (("alpha", 0.9, Range(low=0.01, high=1.0, scale="log")),
         "alpha = 0.9 lies near the end of its range, 1, and that is the largest allowed"),
        (("epsilon", 0.951, Range(low=0.0, high=1.0)),
         "epsilon = 0.951 lies near the end of its range, 1, and that is the largest allowed"),
        (("epsilon", 0.949, Range(low=0.0, high=1.0)), ""),
        (("horizon", 4, Range(low=1, high=4)),
         "horizon = 4 lies near the end of its range, 4: better ones may lie beyond"),
    ],
)  # fmt: skip
def test_numbers_at_the_edge(arguments, words):
    name, *rest = arguments
    assert edge((COMMON | SETTINGS)[name], *rest) == words


# scale


def test_cells_are_made_once_and_anew_for_a_changed_copy():
    first = study(grid={"alpha": [1.0, 0.5]})
    assert all(one is other for one, other in zip(first.runs(), first.runs(), strict=True))
    changed = first.model_copy(update={"episodes": 9, "worlds": [first.worlds[0].model_copy(update={"text": "S..G"})]})
    assert {cell.episodes for cell in changed.runs()} == {9}
    assert {cell.world.build().n_states for cell in changed.runs()} == {4}
    assert {cell.episodes for cell in first.runs()} == {5}
    assert (first.worlds[0].name, first.worlds[0].purpose) == ("custom-maze", "control")
    assert first.worlds[0].identity == MAZE


def test_a_study_reads_back_as_it_was():
    tables = {"grid": {"frame": ["previous", "current"]}, "search": {"samples": 3, "alpha": LOG, "sample": [1, 2]}}
    agents = [{"kind": "forward", "grid": {"model": ["counts"]}, "search": {"seed": 3}}]
    first = study(agents=agents, **tables)
    first.runs()
    for written in (first.model_dump_json(exclude_defaults=True), json.dumps(first.model_dump())):
        again = check_study(json.loads(written), "again")
        assert again.runs() == first.runs()
        assert again == first


@pytest.mark.parametrize(
    "tables",
    [
        {"grid": {"alpha": [(i + 1) / 100_000 for i in range(100_000)]}},
        {"grid": {"alpha": [(i + 1) / 1000 for i in range(1000)], "sample": list(range(1, 101))}},
        pytest.param(
            {"search": {"samples": 100_000, "forget": {"low": 0.0, "high": 0.9}, "alpha": LOG}}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"agents": [{"kind": "forward", "grid": {"forget": [i / 200_000 for i in range(100_000)]}}]},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_hundred_thousand_cells_are_checked(tables):
    cells = study(**{"agents": [{"kind": "forward"}], **tables}).runs()
    assert len(cells) > 99_000
    assert len({cell.label for cell in cells}) == len(cells)
