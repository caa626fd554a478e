"""The agents of a study: their settings, and which settings are searched."""

import functools
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, create_model, field_validator, model_validator

from backcast.agents import Agent, agent
from backcast.agents.agent import check_settings
from backcast.agents.kinds import KINDS, Kind
from backcast.agents.settings import COMMON, SETTINGS
from backcast.core.errors import InputError
from backcast.core.registry import named_kind
from backcast.core.setting_types import Setting
from backcast.studies.search import Search
from backcast.studies.worldspec import REGISTERED, Strict, one_of, optional_fields


class Searched(Strict):
    """The searched settings: values whose every combination is run, and distributions of samples."""

    grid: dict[str, list[Any]] = Field(default={})
    search: Search = Search()

    @model_validator(mode="after")
    def _one_way_each(self) -> Self:
        for name in self.grid.keys() & self.search.settings.keys():
            raise InputError(f"search.{name}: it is in grid as well; give one of them")
        return self


class _AgentSpec(Searched):
    """An agent of a study: the arguments of `backcast.agent`.

    `label` is its name in tables and figures, if different from the agent's own; `only` excludes it from worlds of the
    other purpose; `grid` and `search` add to those of the study, or replace their entries.
    """

    model_config = ConfigDict(extra="allow")  # the settings of its kind, validated

    kind: str
    label: str | None = None
    only: Literal["prediction", "control"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_checked_settings(cls, given: Any) -> Any:
        kind = named_kind(KINDS, given)
        if kind is None:
            return given
        common = {name: value for name, value in given.items() if name in cls.model_fields}
        return common | _typed_settings(kind, {name: value for name, value in given.items() if name not in common})

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(KINDS, kind, REGISTERED)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def build(self, settings: dict[str, Any]) -> Agent:
        """The agent, with `settings` in place of its own."""
        common = {name: getattr(self, name) for name in COMMON if getattr(self, name) is not None}
        return agent(self.kind, **{**common, **(self.__pydantic_extra__ or {}), **settings})

    def base(self, built: Agent, searched: Collection[str]) -> str:
        """Its label, or the name of the agent without the searched settings."""
        own = tuple(pair for pair in built.settings if pair[0] not in searched)
        named = {name: getattr(self, name) for name in ("frame", "learn")}
        return self.label or replace(built, **named, settings=own).name


def _typed_settings(kind: Kind, given: dict[str, Any]) -> dict[str, Any]:
    """Convert the given settings of a kind to plain data of their types; raise InputError on others."""
    foreign = {name: value for name, value in given.items() if name in SETTINGS and name not in kind.table}
    check_settings(kind, foreign)
    typed = _table_of(kind).model_validate({name: value for name, value in given.items() if name not in foreign})
    return {name: value for name, value in typed if value is not None}


@functools.cache
def _table_of(kind: Kind) -> type[Strict]:
    """The settings of a kind, each of its type."""
    return create_model("Settings", __base__=Strict, __module__=__name__, **optional_fields(kind.table.values()))


def _field(setting: Setting) -> Any:
    """A field for a setting: bool for a switch; None for others that were not given."""
    return (bool, setting.default) if setting.of is bool else (setting.of | None, None)


AgentSpec: Any = create_model(
    "AgentSpec", __base__=_AgentSpec, __module__=__name__, **{name: _field(each) for name, each in COMMON.items()}
)
