"""The methods paragraph of a study, from its settings: what was run, how often, and how intervals were computed."""

from collections.abc import Iterable, Sequence

import numpy as np

from backcast import __version__
from backcast.agents import Agent
from backcast.agents.settings import COMMON, SETTINGS
from backcast.drivers.metrics import METRICS
from backcast.report.scores import judged_by
from backcast.studies import resampling
from backcast.studies.cells import Cell
from backcast.studies.claims import judge
from backcast.studies.results import Results

RATES = ("alpha", "alpha_model", "alpha_plan", "epsilon")
SCHEDULES = {
    "linear": "falling linearly to 0 over the run",
    "constant": "constant",
    "average": "divided by the number of updates of an entry",
}
MOST_NAMED = 8  # most agents and worlds that are listed by name


def methods(result: Results) -> list[str]:
    """The sentences of the paragraph, in plain text."""
    cells = [cell for world in result.worlds for cell in result.cells(world)]
    return [
        *_experiment(result, cells),
        *_step_sizes([cell.agent for cell in cells], any(cell.world.purpose == "control" for cell in cells)),
        *_search(result),
        *_computation(result, cells),
        *_intervals(result),
        *_multiplicity(result),
        f"All results were computed with Backcast {__version__}.",
    ]


def _experiment(result: Results, cells: Sequence[Cell]) -> Iterable[str]:
    """What was run, and how often."""
    agents = list(dict.fromkeys(cell.label for cell in cells))
    worlds = [result.picture(world).title for world in result.worlds]
    episodes = _range([cell.episodes for cell in cells])
    limits = [cell.updates for cell in cells if cell.updates is not None]
    until = f" or until it had made {_range(limits)} value updates" if limits else ""
    yield (
        f"We ran {_count(agents, 'agent')} in {_count(worlds, 'environment')}"
        f" with {result.seeds:,} independent {'seed' if result.seeds == 1 else 'seeds'} each;"
        f" a run lasted {episodes} episodes{until}."
    )
    if len(agents) > 1:
        yield (
            "For a given seed, all agents faced the same environment with the same random numbers,"
            " so that differences between agents are paired."
        )


def _step_sizes(agents: Sequence[Agent], control: bool) -> Iterable[str]:
    """Step sizes and exploration, where they are plain numbers; values that differ between agents as a range."""
    parts = []
    for name in RATES if control else RATES[:-1]:
        found = {getattr(agent, name) for agent in agents} - {None}
        if found and all(isinstance(value, (int, float)) for value in found):
            parts.append(f"{COMMON[name].symbol or name} = {_range(found)}")
    kinds = dict.fromkeys(agent.schedule for agent in agents)
    if parts:
        how = " or ".join(SCHEDULES.get(kind, kind) for kind in kinds)
        what = "Step sizes and exploration" if control else "Step sizes"
        yield f"{what} were {', '.join(parts)}, {how}, unless an agent's name says otherwise."


def _search(result: Results) -> Iterable[str]:
    """How settings were chosen, if they were."""
    searched = dict.fromkeys(name for space in result.study.spaces for name in space.sources)
    tried = {cell.label for world in result.worlds for cell in result.cells(world) if cell.point}
    if searched:
        symbols = {**COMMON, **SETTINGS}
        names = [symbols[name].symbol or name if name in symbols else name for name in searched]
        yield (
            f"We searched {', '.join(names)} over {len(tried):,} combinations of agent and settings."
            " The best setting has the best mean over episodes and seeds; its score on fresh seeds"
            " was estimated by choosing on one half of the seeds and evaluating on the other half."
        )


def _computation(result: Results, cells: Sequence[Cell]) -> Iterable[str]:
    """The definition and the number of value updates."""
    made = {cell.label: result.value_updates(cell.world.name, cell.label) for cell in cells}
    fewest, most = min(made, key=made.__getitem__), max(made, key=made.__getitem__)
    spread = f" A run made between {made[fewest]:,.0f} ({fewest}) and {made[most]:,.0f} ({most}) of them."
    yield (
        "Computation is measured in value updates: every change of one value estimate counts as one,"
        " from a real transition or from a model." + (spread if fewest != most else "")
    )


def _intervals(result: Results) -> Iterable[str]:
    """Scores, intervals and the treatment of diverged runs."""
    metrics = dict.fromkeys(judged_by(result, world).name for world in result.worlds)
    words = " and ".join(f"{METRICS[name].label} ({METRICS[name].better})" for name in metrics)
    yield f"An agent's score is the mean over episodes of {words}."
    if result.seeds > 1:
        yield (
            "We report means and interquartile means over seeds with 95 % studentised bootstrap intervals"
            f" ({resampling.how_many(result.seeds):,} resamples of seeds), whose ends are at least as far out as those"
            " of Student's t."
        )
    lost = sum(int(np.count_nonzero(result.diverged(w, agent))) for w in result.worlds for agent in result.agents(w))
    if lost:
        yield f"In {lost:,} {'run' if lost == 1 else 'runs'} the values diverged; such a run counts as infinitely bad."


def _multiplicity(result: Results) -> Iterable[str]:
    """The number of comparisons, and corrections for it."""
    if result.seeds < 2:
        return
    verdicts = judge(result)
    if not verdicts:
        yield "Intervals are not corrected for the number of comparisons."
        return
    compared = sum(len(verdict.parts) for verdict in verdicts)
    yield (
        f"We judged {len(verdicts)} {'claim' if len(verdicts) == 1 else 'claims'} by {compared} paired comparisons."
        " A claim is supported if every one of its comparisons is, each by its own 95 % interval (an"
        " intersection-union test, Berger 1982). It is contradicted if one of them is, by intervals that hold for all"
        " comparisons of the claim together with 95 % (max-t, Westfall and Young 1993; Romano and Wolf 2005)."
    )


def _range(numbers: Iterable[float]) -> str:
    """A number, or the smallest and the largest of several."""
    low, high = min(numbers), max(numbers)
    return _number(low) if low == high else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _count(names: Sequence[str], noun: str) -> str:
    """The number of things, with their names if they are few."""
    named = f" ({'; '.join(names)})" if len(names) <= MOST_NAMED else ""
    return f"{len(names):,} {noun}{'s' if len(names) > 1 else ''}{named}"
