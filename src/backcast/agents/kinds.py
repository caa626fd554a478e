"""The kinds of agents: the model, planner and learner of each.

A kind is a function from a `Setup` (the world's sizes and, if known, the world) and an agent's settings to a model,
a planner and optionally a learner (default: TD or Q-learning). `register` adds one; Backcast's own are registered in
the same way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.parts import Parts
from backcast.agents.settings import COMMON, SETTINGS, Settings, describe
from backcast.agents.setup import Setup
from backcast.core.arrays import Mask, Vector
from backcast.core.errors import InputError
from backcast.core.freezing import FrozenDict, freeze
from backcast.core.nesting import with_all_inside
from backcast.core.registry import Registered, first_line, refuse_taken
from backcast.core.setting_types import Depends, Setting, free
from backcast.learners.contract import Learner, LearnerPart
from backcast.learners.td import TD
from backcast.models.contract import Model, ModelPart
from backcast.planners.contract import AnyPlanner, PlannerPart
from backcast.values.contract import Values
from backcast.values.linear import zero_values
from backcast.values.step_sizes import StepSizes, step_sizes, step_sizes_of_features
from backcast.values.table import zeros

StepSize = float | Sequence[float]
Rule = Callable[["Kind", Mapping[str, Any], str], Iterable[tuple[bool, str]]]
Built = tuple[ModelPart, PlannerPart[Any, Any]] | tuple[ModelPart, PlannerPart[Any, Any], LearnerPart]
Build = Callable[["Setup", "Agent"], Built]
B = TypeVar("B", bound=Build)
RESERVED = ("kind", "label", "only", "grid", "search")  # keys of an agent in a study besides its settings


@dataclass(frozen=True)
class Agent:
    """An agent's settings; made by `backcast.agent`, which checks them.

    Attributes:
        kind: the name of its kind (`backcast list` shows all kinds).
        frame: "previous" (plan from s), "current" (plan from s') or None for the kind's default.
        learn: False for pure planning.
        alpha: step size of learning; a number, or one per episode.
        alpha_model: step size of model learning.
        alpha_plan: step size of planning; None: alpha.
        epsilon: probability of a random action in control.
        schedule: "linear" (rates fall to 0 over the run), "constant", or "average" (α / n for the n-th update of an
            entry).
        epsilon_schedule: "linear" or "constant"; None: linear if `schedule` is.
        settings: further settings of the kind, such as ("model", "counts"); `get` looks one up.
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
        """The name in exported tables: `kind` or `kind@frame`, with the prefix `pure:` if learn=False.

        Settings of the kind follow: `backward@previous,model=counts`.
        """
        frame = f"@{self.frame}" if self.frame else ""
        return ("" if self.learn else "pure:") + self.kind + frame + describe(self.settings)

    def get(self, setting: str, usual: object = None) -> Any:
        """Return a setting. If it was not given, return the default of its kind, or else `usual`."""
        given = dict(self.settings)
        if setting in given:
            return given[setting]
        default = KINDS[self.kind].usual(setting, given) if self.kind in KINDS else None
        return usual if default is None else default

    def shared(self, setting: str, usual: object = None) -> Any:
        """As `get`, for Backcast's own setting of this name, ignoring one that the kind registered itself."""
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
        """Whether all seeds begin with the same parts, except for their random numbers.

        Backcast's own kinds use the seed of a setup for nothing else; for third-party kinds this is not known.
        """
        recipes = self.get("features"), self.get("model_features")
        return KINDS[self.kind].is_builtin and not any(each.drawn_by_seeds for each in recipes if each is not None)

    @property
    def span(self) -> tuple[str, Any]:
        """The setting that defines how many steps its model spans, and its value; by default `horizon`, 1."""
        if not KINDS[self.kind].spans:
            return "horizon", 1
        given = ((name, self.shared(name)) for name in ("weights", "lam", "option"))
        return next((span for span in given if span[1] is not None), ("horizon", self.shared("horizon", 1)))

    @property
    def looks_far(self) -> bool:
        """Whether it has a model that spans several steps."""
        return self.span != ("horizon", 1)

    @property
    def plans_from_current(self) -> bool:
        """Whether planning starts from s' rather than from s."""
        return (self.frame or KINDS[self.kind].frame) == "current"

    def rates(self, episodes: int) -> Vector:
        """(episodes, 4): α, α of the model, α of planning and ε in each episode."""
        self.refuse_lists(episodes)
        return np.stack([_per_episode(*rate, episodes) for rate in self._rates.values()], axis=1)

    def refuse_lists(self, episodes: int) -> None:
        """Raise InputError if a list of rates has not one for each episode."""
        for name, (rate, _) in self._rates.items():
            if np.ndim(rate) > 0 and len(rate) != episodes:
                raise InputError(
                    f"{name}: a list of {len(rate)} given for {episodes} episodes; expected one per episode"
                )

    def rates_at_first(self) -> tuple[Vector, Mask]:
        """The rates at the first step of a run of a given number of steps, (4,); whether each falls to 0 over it."""
        for name, (rate, _) in self._rates.items():
            if np.ndim(rate) > 0:
                raise InputError(
                    f"{name}: a list with one for each episode given, but the number of episodes in a run of steps is"
                    " not known in advance; give a number"
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
        """New step sizes of value updates, with their own counts: for one learner or one planner."""
        if self.averages and setup.values is not None:
            return step_sizes_of_features(setup.values)
        return step_sizes(self.averages, setup.n_states * setup.n_actions)

    def build(self, setup: Setup) -> Parts:
        """Build the parts of this agent for a world."""
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
            cast(Model, model),  # `part` has added the missing methods
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
        name: name in `backcast.agent`.
        summary: line in `backcast list`.
        build: function that makes a model, a planner and optionally a learner for a setup.
        frame: the default frame of its planner ("each": both, by its two planners); None if it plans from neither.
        only: "prediction" or "control" if it works in only one of them.
        plans: whether pure planning (learn=False) is possible.
        settings: the names of its settings besides the common ones.
        reference: where it was published.
        direction: direction of planning from the states of a step: "forward", "backward" or "both"; otherwise None.
        true: whether it always plans with the true model.
        learns_model: whether the step size of the model matters to it.
        counterpart: the corresponding kind for worlds of the other purpose.
        numbered: whether it needs numbered states, rather than observations of a Box.
        table_only: why its values cannot be linear in features; empty if they can.
        averages: whether its parts support schedule="average", with `agent.step_sizes(setup)`.
        spans: whether `horizon`, `weights`, `lam` and `option` define how many steps its model spans, rather than how
            far traces or returns reach.
        connects_pairs: whether it may connect every pair s, a with every other, whatever its settings.
        replays: whether it learns again from transitions that it remembers; with a network, from the network's memory.
        family: its heading and colour in figures; empty if it has none.
        label: its name in figures and the lab; by default `name`.
        own: the settings that were registered with it, in contrast to those of Backcast's table.
        defaults: defaults of its settings that differ from those of the table.
        rules: which of its settings cannot be combined. A rule takes the kind, the given settings and the schedule, and
            yields pairs: whether the rule is broken, and the reason for the refusal.
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
    defaults: FrozenDict = FrozenDict()  # noqa: RUF009  immutable
    rules: tuple[Rule, ...] = ()

    @property
    def function(self) -> Build:
        """The registered function."""
        return self.build

    @property
    def table(self) -> dict[str, Setting]:
        """Its settings besides the common ones: those of Backcast's table, in that order, then its own."""
        known = {name: setting for name, setting in SETTINGS.items() if name in self.settings}
        table = {**known, **{setting.name: setting for setting in self.own}}
        return table | {name: replace(table[name], default=default) for name, default in self.defaults.items()}

    def usual(self, name: str, given: Mapping[str, Any]) -> Any:
        """The default of a setting, given the other settings; None if there is none."""
        if name not in self.settings:
            return None
        setting = next((each for each in self.own if each.name == name), None) or SETTINGS[name]
        return (replace(setting, default=self.defaults[name]) if name in self.defaults else setting).usual(given)

    def has_own(self, name: str) -> bool:
        """Whether it registered a setting of its own under this name."""
        return any(setting.name == name for setting in self.own)

    @property
    def in_words(self) -> str:
        """Its name in figures and the lab."""
        return self.label or self.name.replace("-", " ")

    def check(self, setup: Setup, agent: Agent) -> None:
        """Raise InputError if this agent does not suit the world."""
        if self.numbered:
            setup.refuse_observations(agent.name)
        if setup.world is not None and setup.world.motion is not None and not agent.has_network:
            raise InputError(
                f"agent: {agent.name!r} needs numbered states, and those of {setup.world.name} are vectors; give it"
                " network=backcast.networks.mlp(64, 64)"
            )
        here = "prediction" if setup.is_prediction else "control"
        tied = self.direction in ("backward", "both") or agent.looks_far  # tied to a policy
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
        name: name in `backcast.agent`.
        frame: the default frame of its planner, if it plans from s or s'.
        only: "prediction" or "control" if it works in only one of them.
        plans: whether pure planning (learn=False) is possible; by default, if it has a frame.
        settings: its settings besides the common ones. The name of one of Backcast's settings means that setting. Any
            other name is a free setting, which `agent.get(name)` returns as it was given. A `Setting` has its own
            bounds and meaning, even if one of Backcast's settings has the same name.
        reference: where it was published.
        defaults: what `agent.get` returns for settings that are not given, by name, if that differs from the default of
            the setting itself.
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
    """Raise InputError if a part needs a table of values, for agents whose values are linear in features."""
    for part in (each for one in parts for each in with_all_inside(one)):
        if part.needs_table():
            raise InputError(
                f"features: {kind!r} plans by {type(part).__name__}, which needs a table of values; leave them out (the"
                " author of the kind finds in docs/extending.md what plans with both)"
            )


def _per_episode(rate: StepSize, falls: bool, episodes: int) -> Vector:
    if np.ndim(rate) > 0:
        return np.asarray(rate, dtype=np.float64)
    falling = (episodes - np.arange(episodes)) / episodes if falls else np.ones(episodes)
    return float(rate) * falling  # type: ignore[arg-type]
