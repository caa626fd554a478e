"""Rules on which settings cannot be combined, and why; Backcast's own kinds are registered with them.

Rules apply to settings of Backcast's table. A third-party kind that takes these by name may be registered with the
same rules, `rules=KINDS["backward"].rules`. The rules ignore settings that it registered itself under the same names.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from backcast.agents.estimators import ESTIMATORS, Estimator, linear_names, neural_names
from backcast.agents.kinds import Kind, Rule
from backcast.agents.settings import NEURAL_MODELS, NEURAL_VALUES, TRANSITIONS, usual_model
from backcast.models.none import NoModel
from backcast.planners.backward import AllPredecessors

_DEEPEST = 5
_OF_TABLES = ("horizon", "weights", "lam", "option", "conditioned", "forget", "importance", "top", "depth")
_NO_MODEL = Estimator(
    "", "", lambda setup, agent, forward: (NoModel(), AllPredecessors())
)  # the default model of an agent
_OF_LINEAR = ("model_features", "learn_by", "ridge", "memory", "buffer")
_NOT_OF_NETWORKS = (*_OF_TABLES[1:], "lam_by", "model_features", "learn_by", "ridge", "buffer")
_OF_MEMORY = ("batch", "every", "target_every", "double", "candidates")


def about_models(kind: Kind, given: Mapping[str, Any], schedule: str) -> list[tuple[bool, str]]:
    """Rules for models of states and their planners: pairs of whether a rule is broken, and the reason."""
    chosen = _of_the_table(kind, given)
    forward, plans = kind.direction == "forward", kind.direction in ("forward", "backward")
    model = ESTIMATORS["true"] if kind.true else ESTIMATORS.get(chosen.get("model", ""), _NO_MODEL)
    by_td, lam, depth = chosen.get("lam_by") == "td", chosen.get("lam"), chosen.get("depth", 1)
    spans = [name for name in ("horizon", "weights", "lam", "option") if name in chosen]
    ends = getattr(chosen.get("option"), "termination", None)
    conditioned, importance = chosen.get("conditioned", False), chosen.get("importance", False)
    sample, top, forget = (name in chosen for name in ("sample", "top", "forget"))
    return [
        (len(spans) > 1, f"{' and '.join(spans)}: each of them sets the number of steps of the model; give only one"),
        (plans and "lam_by" in chosen and lam is None, "lam_by: only for λ-models; give lam as well"),
        (by_td and model.true, "lam_by: there is nothing to learn about the true model; leave lam_by out"),
        (
            by_td and model.leaves,
            f"lam_by: 'td' does not use {model.words}, because it moves probabilities towards each other; leave model"
            " out",
        ),
        (
            forward and isinstance(lam, tuple),
            "lam: one for each state given, expected a number for a forward model: λ(s̃) belongs to predecessors",
        ),
        (plans and lam is not None and bool(np.all(np.asarray(lam) == 1)), "lam: 1 everywhere would never stop"),
        (
            conditioned and model.leaves,
            f"conditioned: {model.words} for each action gives unobserved pairs different probabilities, which no"
            " single map of the table can apply; use model='counts'",
        ),
        (conditioned and by_td, "conditioned: rows learned by TD are joint; use lam_by='mc'"),
        (conditioned and model.true, "conditioned: the true model is for prediction, where there is one action"),
        (
            ends is not None and model.leaves,
            f"option: with a termination some paths have no initiation, and {model.words} cannot represent 'none';"
            " use model='counts'",
        ),
        (
            (plans or kind.direction == "both") and chosen.get("sample") == 0,
            "sample: 0 given, expected 1 or more; leave it out to plan with all predecessors or successors",
        ),
        (sample and top, "sample and top: sample draws from the whole row, and top truncates it; give only one"),
        (
            depth > _DEEPEST and not (sample or top),
            f"depth: {depth} levels of all predecessors are exponentially many; add sample or top, or give at"
            f" most {_DEEPEST} levels",
        ),
        (forget and model.true, "forget: a true model has nothing to forget"),
        (forget and by_td, "forget: rows learned by TD forget with the step size alpha_model"),
        (importance and model.true, "importance: a true model is not learned"),
        (importance and by_td, "importance: rows learned by TD are not weighted; use lam_by='mc'"),
        (
            importance and "option" in chosen,
            "importance and option: the option defines the target policy; leave importance out",
        ),
    ]


def about_directions(kind: Kind, given: Mapping[str, Any], schedule: str) -> list[tuple[bool, str]]:
    """Rules on models that cannot look in the direction in which the kind plans."""
    network = "network" in _of_the_table(kind, given)
    model = ESTIMATORS.get(_of_the_table(kind, given).get("model", ""), _NO_MODEL)
    forward, backward = (kind.direction in (each, "both") for each in ("forward", "backward"))
    return [
        (
            kind.direction == "both" and model.linear and not network,
            f"model: {model.words} is a model of features, in one direction; for both at once use 'counts'",
        ),
        (
            kind.direction == "both" and model.leaves and not network,
            f"model: backward planning with {model.words} changes all values, and forward planning would have to"
            " recompute its sums; for both at once use 'counts'",
        ),
        (
            forward and bool(model.not_forward),
            f"model: {model.words} does not look forward: {model.not_forward}",
        ),
        (
            backward and bool(model.not_backward),
            f"model: {model.words} does not look backward: {model.not_backward}",
        ),
    ]


def about_features(kind: Kind, given: Mapping[str, Any], schedule: str) -> list[tuple[bool, str]]:
    """Rules for agents with features, or without them."""
    chosen = _of_the_table(kind, given)
    if "network" in chosen:
        return []
    plans, features = kind.direction in ("forward", "backward") and not kind.true, "features" in chosen
    model = ESTIMATORS.get(chosen.get("model", "expectation" if features and plans else ""), _NO_MODEL)
    by_rls = chosen.get("learn_by") == "rls"
    of_tables = [name for name in _OF_TABLES if name in chosen]
    selects = [name for name in ("top", "depth") if name in chosen]
    of_linear = [name for name in _OF_LINEAR if name in chosen]
    return [
        (
            model.linear and not features,
            f"model: {model.words} is linear in features; "
            + ("give features as well" if plans else "use 'forward' or 'backward', with features"),
        ),
        (
            plans and not (features and model.linear) and bool(of_linear),
            f"{' and '.join(of_linear)}: only for models of features; give features, and model one of"
            f" {', '.join(linear_names())}",
        ),
        (
            features and model.leaves,
            f"model: {model.words} gives some probability to all states, which needs a table of values; 'likelihood' is"
            " the softmax of linear models",
        ),
        (
            features and model.linear and bool(of_tables),
            f"{' and '.join(of_tables)}: for models of states, 'counts' or 'true', not for {model.words}",
        ),
        (
            features and kind.direction in ("backward", "both") and bool(selects),
            f"{' and '.join(selects)}: with features all predecessors are corrected at once",
        ),
        (
            by_rls and "learn_by" not in model.takes,
            f"learn_by: 'rls' solves least squares, and {model.words} is learned by gradient steps; leave it out",
        ),
        ("ridge" in chosen and not by_rls, "ridge: it belongs to learn_by='rls'"),
        (chosen.get("ridge") == 0, "ridge: 0 given, expected a number above 0"),
        (
            plans and "buffer" in chosen and "buffer" not in model.takes,
            "buffer: only for model='gaussian', which remembers residuals; leave it out",
        ),
        (
            model.linear and "sample" in chosen and "sample" not in model.takes,
            f"sample: {model.words} makes its expected update at once; there is nothing to draw",
        ),
    ]


def about_averages(kind: Kind, given: Mapping[str, Any], schedule: str) -> list[tuple[bool, str]]:
    """Rules for schedule="average"."""
    if schedule != "average" or kind.true:
        return []
    chosen = _of_the_table(kind, given)
    model = ESTIMATORS.get(chosen.get("model") or usual_model(chosen) or "", _NO_MODEL)
    one_by_one = any(name in chosen for name in ("sample", "top", "features"))
    return [
        (
            kind.direction == "backward" and model.leaves and not one_by_one,
            f"schedule: 'average' counts the updates of each value, but a backward step of {model.words} moves all"
            " values by one map with one step size; use model='counts', or add sample or top",
        ),
        (
            bool(model.not_averaged),
            f"schedule: 'average' is not for model={model.name!r}: {model.not_averaged}; use 'linear' or 'constant'",
        ),
    ]


def about_memory(kind: Kind, given: Mapping[str, Any], schedule: str) -> list[tuple[bool, str]]:
    """Rules for `memory`: a memory of observations needs values that are linear in features."""
    chosen = _of_the_table(kind, given)
    memory, features = chosen.get("memory"), "features" in chosen
    alone = memory is not None and not features and "network" not in chosen
    return [
        (alone, "memory: only for agents with features or a network; give one of these as well"),
        (features and memory in (0, 1), f"memory: {memory} given, expected a whole number, 2 or more"),
    ]


def about_networks(kind: Kind, given: Mapping[str, Any], schedule: str) -> list[tuple[bool, str]]:
    """Rules for agents with a network, or without one."""
    chosen = _of_the_table(kind, given)
    network, memory = "network" in chosen, chosen.get("memory", TRANSITIONS)
    model = ESTIMATORS.get(chosen.get("model", ""), _NO_MODEL)
    plans = kind.direction in ("forward", "backward", "both")
    of_networks = [name for name in (*NEURAL_VALUES[1:], *NEURAL_MODELS) if name in chosen and name != "memory"]
    of_others = [name for name in _NOT_OF_NETWORKS if name in chosen]
    of_memory = [name for name in _OF_MEMORY if name in chosen]
    name = chosen.get("model", "contrastive")
    contrasts = plans and name == "contrastive" and "model" in chosen
    return [
        (
            not network and bool(of_networks),
            f"{' and '.join(of_networks)}: only for agents with a network; give network as well",
        ),
        (not network and model.network, f"model: {model.words} is computed by a network; give network as well"),
        (
            network and "features" in chosen,
            "network and features: values are computed by a network or are linear in features; give one of them",
        ),
        (
            network and bool(of_others),
            f"{' and '.join(of_others)}: not for agents with a network, whose models are not tables; leave it out",
        ),
        (
            network and schedule == "average",
            "schedule: 'average' counts the updates of an entry of a table, and a network has none; use 'linear' or"
            " 'constant'",
        ),
        (
            network and plans and "model" in chosen and model.by_network is None,
            f"model: {model.words} is not computed by a network; use {' or '.join(map(repr, neural_names()))}",
        ),
        (
            network and memory == 0 and contrasts,
            "model: 'contrastive' plans with pairs that are remembered, and memory=0 remembers none; use 'softmax'",
        ),
        (
            network and memory == 0 and kind.replays,
            f"memory: 0 given, but {kind.name!r} learns again from what is remembered; expected 1 or more",
        ),
        (
            network and memory == 0 and bool(of_memory),
            f"{' and '.join(of_memory)}: with memory=0 an agent learns from each transition as it comes, without a"
            " target network; leave it out",
        ),
        (
            network and 0 < memory < chosen.get("batch", 32),
            f"memory: {memory} transitions cannot fill a batch of {chosen.get('batch', 32)}; expected at least as many",
        ),
        (
            network and "sample" in chosen and kind.direction in ("forward", "both"),
            "sample: with a network, forward planning takes the expectation over all candidates; leave it out",
        ),
    ]


def about_models_by_networks(kind: Kind, given: Mapping[str, Any], schedule: str) -> list[tuple[bool, str]]:
    """Rules for the models of agents with a network."""
    chosen = _of_the_table(kind, given)
    if "network" not in chosen:
        return []
    name, steps, memory = chosen.get("model") or usual_model(chosen), chosen.get("horizon", 1), chosen.get("memory")
    model = ESTIMATORS.get(name or "", _NO_MODEL)
    plans = kind.direction in ("forward", "backward", "both")
    aware = chosen.get("objective") == "planner-aware"
    room = TRANSITIONS if memory is None else memory
    far = [each.name for each in ESTIMATORS.values() if each.far_by_network]
    return [
        (
            "components" in chosen and name != "generative",
            f"components: only for model='generative'; {model.words} has no mixture; leave it out",
        ),
        (
            aware and bool(model.not_planner_aware),
            f"objective: 'planner-aware' is not for {model.words}: {model.not_planner_aware}; leave it out",
        ),
        (
            "sample" in chosen and name == "abstract",
            "sample: 'abstract' makes its correction at once; there is nothing to draw",
        ),
        (
            steps > 1 and not (kind.direction == "backward" and model.far_by_network),
            f"horizon: {steps} given; with a network only backward planning with model={' or '.join(map(repr, far))}"
            f" spans several steps, not {kind.name!r}{f' with {model.words}' if plans else ''}; leave it out",
        ),
        (
            steps > 1 and aware,
            "horizon and objective: 'planner-aware' compares corrections of single steps; give one of them",
        ),
        (
            steps > room > 0,
            f"horizon: {steps} steps given, but {room} transitions are remembered; expected at most as many",
        ),
    ]


def _of_the_table(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of Backcast's table among those given."""
    return {name: value for name, value in given.items() if not kind.has_own(name)}


LEARNING: tuple[Rule, ...] = (about_networks, about_models_by_networks, about_memory)
PLANNING: tuple[Rule, ...] = (
    about_networks,
    about_models_by_networks,
    about_features,
    about_memory,
    about_models,
    about_directions,
    about_averages,
)
