"""The kinds of agents: which model, planner and learner each is made of.

A kind is a function from a `Setup` (the world's sizes and, if known, the world) and an agent's settings to a model,
a planner and, if it is not TD or Q-learning, a learner. `register` adds one; Backcast's own are registered in the same
way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.parts import Parts
from backcast.agents.settings import COMMON, SETTINGS, Settings, describe
from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.errors import InputError
from backcast.core.freezing import FrozenDict, freeze
from backcast.core.nesting import with_all_inside
from backcast.core.randomness import Stream, imagination
from backcast.core.registry import Registered, first_line, refuse_taken
from backcast.core.setting_types import Depends, Setting, free
from backcast.features.maps import FeatureMap
from backcast.learners.contract import Learner, LearnerPart
from backcast.learners.td import TD
from backcast.models.contract import Model, ModelPart
from backcast.planners.contract import AnyPlanner, PlannerPart
from backcast.values.contract import Values
from backcast.values.linear import Features, LinearValues, zero_values
from backcast.values.observations import Observations
from backcast.values.state_features import features_of_states
from backcast.values.step_sizes import StepSizes, step_sizes, step_sizes_of_features
from backcast.values.table import zeros
from backcast.worlds.world import World

StepSize = float | Sequence[float]
Rule = Callable[["Kind", Mapping[str, Any], str], Iterable[tuple[bool, str]]]
Built = tuple[ModelPart, PlannerPart[Any, Any]] | tuple[ModelPart, PlannerPart[Any, Any], LearnerPart]
Build = Callable[["Setup", "Agent"], Built]
B = TypeVar("B", bound=Build)
RESERVED = ("kind", "label", "only", "grid", "search")  # keys of an agent in a study, beside its settings


@dataclass(frozen=True)
class Setup:
    """What an agent is told about where it will live.

    Only the true models look at the transitions of `world`; others take from it what can follow what, where it ends and
    where its states lie.

    Attributes:
        n_states: S.
        n_actions: A, 1 in prediction.
        discount: γ.
        world: the world, if it is known.
        seed: of the run.
        max_steps: where episodes are cut off, if they are.
        observations: the memory of observations, n_states of them, if states have no numbers of their own.
        values: the agent's values, if they are linear in features.
    """

    n_states: int
    n_actions: int
    discount: float
    world: World | None = None
    seed: int = 0
    max_steps: int | None = None
    observations: Observations | None = None
    values: LinearValues | None = None

    def stream(self, purpose: int = 0) -> Stream:
        """Random numbers apart from those of the world and of actions: 0 planning, 1 models, 2 planning forward."""
        return imagination(self.seed, purpose)

    def features(self, recipe: FeatureMap) -> tuple[Features, int, int]:
        """The features of all states, how many there are, and how many of them were given."""
        if self.observations is not None:
            return self.observations.features(recipe)
        return features_of_states(recipe, self.world or self.n_states, self.seed if _drawn_by_seeds(recipe) else 0)

    @property
    def is_prediction(self) -> bool:
        """Whether there is nothing to choose."""
        return self.n_actions == 1

    def refuse_observations(self, agent: "Agent") -> None:
        """Raise InputError unless states have numbers of their own, for a model of such states."""
        if self.observations is not None:
            raise InputError(
                f"agent: {agent.name!r} has a model of numbered states; the observation space is"
                f" {self.observations.space}"
            )

    def fan_in(self) -> Indices:
        """Places for the rows of a backward model, (S,): 0 where the graph is not known (rows then grow)."""
        return np.zeros(self.n_states, dtype=np.int64) if self.world is None else self.world.fan_in

    def fan_out(self) -> Indices:
        """Places for the rows of a forward model, (S·A,)."""
        rows = self.n_states * self.n_actions
        return np.zeros(rows, dtype=np.int64) if self.world is None else self.world.fan_out


@dataclass(frozen=True)
class Agent:
    """An agent's settings; made by `backcast.agent`, which checks them.

    Attributes:
        kind: which models, planners and learners it is made of (`backcast list` names the kinds).
        frame: "previous" (plan from s), "current" (plan from s') or None for the kind's usual one.
        learn: False for pure planning.
        alpha: step size of learning; a number, or one per episode.
        alpha_model: step size of model learning.
        alpha_plan: step size of planning; None: alpha.
        epsilon: how often a control agent acts at random.
        schedule: "linear" (numbers fall to 0 over the run), "constant", or "average" (α / n for the n-th update of an
            entry).
        epsilon_schedule: "linear" or "constant"; None: linear if `schedule` is.
        settings: what else the kind takes, such as ("model", "counts"); `get` looks one up.
    """

    kind: str
    frame: str | None = None
    learn: bool = COMMON["learn"].default
    alpha: StepSize = 1.0
    alpha_model: StepSize = 1.0
    alpha_plan: StepSize | None = None
    epsilon: StepSize = COMMON["epsilon"].default
    schedule: str = COMMON["schedule"].default
    epsilon_schedule: str | None = None
    settings: Settings = ()

    @property
    def name(self) -> str:
        """As in exported tables: `kind` or `kind@frame`, with `pure:` before it where there is no learning.

        Settings of the kind follow: `backward@previous,model=counts`.
        """
        frame = f"@{self.frame}" if self.frame else ""
        return ("" if self.learn else "pure:") + self.kind + frame + describe(self.settings)

    def get(self, setting: str, usual: object = None) -> Any:
        """The value of a setting; if it was not given the default of its kind, and if there is none the usual one."""
        given = dict(self.settings)
        if setting in given:
            return given[setting]
        default = KINDS[self.kind].usual(setting, given) if self.kind in KINDS else None
        return usual if default is None else default

    def shared(self, setting: str, usual: object = None) -> Any:
        """The same of one of Backcast's settings: what its kind registered by this name is something else."""
        return usual if KINDS[self.kind].has_own(setting) else self.get(setting, usual)

    @property
    def knows_the_truth(self) -> bool:
        """Whether it plans with the true model."""
        model = self.shared("model")
        return KINDS[self.kind].true or (model in ESTIMATORS and ESTIMATORS[model].true)

    @property
    def has_network(self) -> bool:
        """Whether its values are computed by a network."""
        return self.shared("network") is not None

    def refuse_network(self) -> None:
        """Raise InputError if its values are computed by a network."""
        if self.has_network:
            raise InputError(f"agent: {self.name!r} has a network, which backcast.run and backcast.train run")

    @property
    def begins_alike(self) -> bool:
        """Whether seeds begin with the same parts, but for their random numbers.

        Backcast's own kinds ask a setup for nothing else of the seed; what other kinds do with it is not known.
        """
        recipes = self.get("features"), self.get("model_features")
        return KINDS[self.kind].is_builtin and not any(_drawn_by_seeds(each) for each in recipes if each is not None)

    @property
    def span(self) -> tuple[str, Any]:
        """Which setting says how far its model looks, and its value: `horizon`, 1 if nothing else is said."""
        if not KINDS[self.kind].spans:
            return "horizon", 1
        given = ((name, self.shared(name)) for name in ("weights", "lam", "option"))
        return next((span for span in given if span[1] is not None), ("horizon", self.shared("horizon", 1)))

    @property
    def looks_far(self) -> bool:
        """Whether it has a model, which spans several steps."""
        return self.span != ("horizon", 1)

    @property
    def plans_from_current(self) -> bool:
        """Whether planning starts from s' rather than from s."""
        return (self.frame or KINDS[self.kind].frame) == "current"

    def rates(self, episodes: int) -> Vector:
        """(episodes, 4): α, α of the model, α of planning and ε in each episode."""
        return np.stack([_per_episode(name, *rate, episodes) for name, rate in self._rates.items()], axis=1)

    def rates_at_first(self) -> tuple[Vector, Mask]:
        """(4,) the same at the first step of a run of a given number of steps, and whether each falls to 0 over it."""
        for name, (rate, _) in self._rates.items():
            if np.ndim(rate) > 0:
                raise InputError(
                    f"{name}: a list with one for each episode given, but a run of so many steps has as many episodes"
                    " as it takes; give a number"
                )
        first, falls = zip(*self._rates.values(), strict=True)
        return np.array(first, dtype=np.float64), np.array(falls)

    @property
    def _rates(self) -> dict[str, tuple[Any, bool]]:
        """α, α of the model, α of planning and ε, and whether each falls to 0 over a run."""
        given = {
            "alpha": self.alpha,
            "alpha_model": self.alpha_model,
            "alpha_plan": self.alpha if self.alpha_plan is None else self.alpha_plan,
            "epsilon": self.epsilon,
        }
        schedules = dict.fromkeys(given, self.schedule) | {"epsilon": self.epsilon_schedule or self.schedule}
        return {name: (rate, schedules[name] == "linear") for name, rate in given.items()}

    @property
    def averages(self) -> bool:
        """Whether the step size of an update is α / n, after n updates of the same entry."""
        return self.schedule == "average"

    def step_sizes(self, setup: Setup) -> StepSizes:
        """How far updates of values go, counted apart from all others: for one learner or one planner."""
        if self.averages and setup.values is not None:
            return step_sizes_of_features(setup.values)
        return step_sizes(self.averages, setup.n_states * setup.n_actions)

    def build(self, setup: Setup) -> Parts:
        """The parts of this agent, at work in a world."""
        self.refuse_network()
        kind = KINDS[self.kind]
        kind.check(setup, self)
        values: Values = zeros(setup.n_states, setup.n_actions)
        if self.shared("features") is not None:
            values = zero_values(*setup.features(self.shared("features")), setup.n_actions)
            setup = replace(setup, values=values)
        model, planner, *learner = kind.build(setup, self)
        if setup.values is not None:
            _refuse_tables(kind.name, (planner, *learner))
        return Parts(
            cast(Model, model),  # `part` has added what it leaves out
            cast(AnyPlanner, planner),
            cast(Learner, learner[0] if learner else TD(self.learn, self.step_sizes(setup))),
            values,
            setup.discount,
            np.zeros(2, dtype=np.int64),
        )


@dataclass(frozen=True)
class Kind(Registered):
    """A kind of agent.

    Attributes:
        name: what `backcast.agent` calls it.
        summary: one line for `backcast list`.
        build: makes a model, a planner and perhaps a learner for a setup.
        frame: the usual frame of its planner ("each": of each of its planners); None if it plans from neither s nor s'.
        only: "prediction" or "control" if it works in one of them only.
        plans: whether it can do without learning beside (pure planning).
        settings: the names of the settings that it takes besides those that all take.
        reference: where it was published.
        direction: "forward", "backward" or "both" if it plans so from the states of a step; else None.
        true: whether it plans with the true model, whatever its settings are.
        learns_model: whether the step size of the model makes a difference to it.
        counterpart: the kind that does the same in worlds of the other purpose.
        numbered: whether it needs states that have numbers, rather than observations of a Box.
        table_only: why its values cannot be linear in features; empty if they can.
        averages: whether its parts count updates where schedule is "average", with `agent.step_sizes(setup)`.
        spans: whether `horizon`, `weights`, `lam` and `option` say how far its model looks, not how far traces or
            returns reach.
        connects_pairs: whether it may connect every pair s, a with every other, whatever its settings are.
        replays: whether it learns again from transitions that it remembers; with a network, from the network's memory.
        family: the heading that figures have it under, in the colour of the family; empty if it has none.
        label: what figures and the lab call it; by default its name.
        own: the settings that were registered with it, rather than those of Backcast's table.
        defaults: what is taken of its settings that are not given, where that is not the default of the table.
        rules: which of its settings cannot be together. A rule takes the kind, the settings given and the schedule, and
            yields pairs: whether something is the case, and the reason why it is refused then.
    """

    name: str
    summary: str
    build: Build
    frame: str | None = None
    only: str | None = None
    plans: bool = False
    settings: tuple[str, ...] = ()
    reference: str = ""
    direction: str | None = None
    true: bool = False
    learns_model: bool = True
    counterpart: str | None = None
    numbered: bool = False
    table_only: str = ""
    averages: bool = False
    spans: bool = True
    connects_pairs: bool = False
    replays: bool = False
    family: str = ""
    label: str = ""
    own: tuple[Setting, ...] = ()
    defaults: FrozenDict = FrozenDict()  # noqa: RUF009  it does not change
    rules: tuple[Rule, ...] = ()

    @property
    def function(self) -> Build:
        """What was registered."""
        return self.build

    @property
    def table(self) -> dict[str, Setting]:
        """What it takes besides what all take, in a fixed order: that of Backcast's table, then its own."""
        known = {name: setting for name, setting in SETTINGS.items() if name in self.settings}
        table = {**known, **{setting.name: setting for setting in self.own}}
        return table | {name: replace(table[name], default=default) for name, default in self.defaults.items()}

    def usual(self, name: str, given: Mapping[str, Any]) -> Any:
        """The default of a setting, beside those given; None if there is none."""
        if name not in self.settings:
            return None
        setting = next((each for each in self.own if each.name == name), None) or SETTINGS[name]
        return (replace(setting, default=self.defaults[name]) if name in self.defaults else setting).usual(given)

    def has_own(self, name: str) -> bool:
        """Whether it registered a setting by this name, whatever Backcast calls so."""
        return any(setting.name == name for setting in self.own)

    @property
    def in_words(self) -> str:
        """What figures and the lab call it."""
        return self.label or self.name.replace("-", " ")

    def check(self, setup: Setup, agent: Agent) -> None:
        """Refuse a world in which this agent makes no sense."""
        if self.numbered:
            setup.refuse_observations(agent)
        here = "prediction" if setup.is_prediction else "control"
        tied = self.direction in ("backward", "both") or agent.looks_far  # to a policy
        only = "prediction" if agent.knows_the_truth and tied else self.only
        if only is not None and only != here:
            hint = f"; in {here} use {self.counterpart!r}" if self.counterpart else ""
            if agent.knows_the_truth:
                hint = (
                    ": the model is tied to a policy, and a control agent's changes all the time. Give the world"
                    " a fixed policy, backcast.worlds.from_mdp(mdp, policy)"
                )
            raise InputError(f"agent: {agent.name!r} works in {only} worlds, this one is for {here}{hint}")
        if not agent.knows_the_truth:
            return
        if setup.world is None:
            raise InputError(f"agent: {agent.name!r} plans with the true model, but this environment carries no table")
        if setup.world.later is not None:
            raise InputError(
                f"agent: {agent.name!r} plans with the true model, but {setup.world.name} changes after"
                f" {setup.world.later.step:,} steps, and what is true with it; use a model that is learned"
            )


KINDS: dict[str, Kind] = {}


def register(
    name: str,
    *,
    frame: str | None = None,
    only: str | None = None,
    plans: bool | None = None,
    settings: tuple[str | Setting, ...] = (),
    reference: str = "",
    defaults: Mapping[str, Any] | None = None,
    **more: Any,
) -> Callable[[B], B]:
    """Decorator: make a function (setup, agent) → (model, planner[, learner]) available as a kind.

    Its docstring is shown by `backcast list`.

    Args:
        name: what `backcast.agent` calls it.
        frame: the usual frame of its planner, if it plans from s or s'.
        only: "prediction" or "control" if it works in one of them only.
        plans: whether it can do without learning beside; by default, if it has a frame.
        settings: what it takes besides what all kinds take. The name of one of Backcast's settings means that one; any
            other name is a free setting, which `agent.get(name)` gives back as it was given; a `Setting` has bounds and
            a meaning of its own, also if one of Backcast's has the same name.
        reference: where it was published.
        defaults: by name, what `agent.get` returns of settings that are not given, where that is not the default of the
            setting itself.
        more: the other attributes of `Kind`.
    """

    def add(build: B) -> B:
        refuse_taken("kind", name, KINDS.get(name))
        summary = first_line(build.__doc__)
        can_plan = frame is not None if plans is None else plans
        own = tuple(free(each) if isinstance(each, str) else each for each in settings if each not in SETTINGS)
        names = tuple(each if isinstance(each, str) else each.name for each in settings)
        for each in sorted({*RESERVED, *COMMON} & {*names}):
            raise InputError(
                f"settings: {each!r} is an argument of every agent; {name!r} needs another name for its own"
            )
        for each in (defaults or {}).keys() - {*names}:
            raise InputError(f"defaults: {each!r} given, but {name!r} takes {', '.join(names) or 'no settings'}")
        usual = FrozenDict(freeze(defaults or {}))
        kind = Kind(name, summary, build, frame, only, can_plan, names, reference, own=own, defaults=usual, **more)
        for setting in kind.table.values():
            if setting.default is not None and not isinstance(setting.default, Depends):
                setting.check(setting.name, setting.default)
        KINDS[name] = kind
        return build

    return add


def _refuse_tables(kind: str, parts: Iterable[PlannerPart[Any, Any] | LearnerPart]) -> None:
    """Raise if a part needs a table of values, and they are linear in features."""
    for part in (each for one in parts for each in with_all_inside(one)):
        if part.needs_table():
            raise InputError(
                f"features: {kind!r} plans by {type(part).__name__}, which needs a table of values; leave them out (the"
                " author of the kind finds in docs/extending.md what plans with both)"
            )


def _drawn_by_seeds(recipe: FeatureMap) -> bool:
    """Whether every seed draws its own features."""
    return dict(recipe.settings).get("seed", 0) is None


def _per_episode(name: str, rate: StepSize, falls: bool, episodes: int) -> Vector:
    if np.ndim(rate) > 0:
        values = np.asarray(rate, dtype=np.float64)
        if len(values) != episodes:
            raise InputError(f"{name}: a list of {len(values)} given for {episodes} episodes; expected one per episode")
        return values
    falling = (episodes - np.arange(episodes)) / episodes if falls else np.ones(episodes)
    return float(rate) * falling  # type: ignore[arg-type]
