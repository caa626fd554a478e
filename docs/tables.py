"""Write tables into docs, of the settings, worlds, metrics and words that there are: python docs/tables.py."""

import re
from collections.abc import Iterable
from pathlib import Path

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS, Kind
from backcast.agents.settings import COMMON, SETTINGS
from backcast.core.setting_types import Setting
from backcast.drivers.metrics import METRICS
from backcast.report.glossary import GLOSSARY
from backcast.worlds.kinds import WORLDS, WorldKind

PAGES = [Path(__file__).parent / name for name in ("agents.md", "studies.md", "glossary.md")]


def settings() -> Iterable[str]:
    """All settings of Backcast's own kinds of agents: name, meaning, what is allowed, and who takes it."""
    own = [kind for kind in KINDS.values() if kind.is_builtin]
    yield from ("| setting | meaning | allowed | taken by |", "|---|---|---|---|")
    for setting in COMMON.values():
        yield f"{_about(setting)} | all kinds, where it applies |"
    for name, setting in SETTINGS.items():
        takes = (f"`{kind.name}`{_other_default(kind, setting)}" for kind in own if name in kind.settings)
        yield f"{_about(setting)} | {', '.join(takes)} |"


def _other_default(kind: Kind, setting: Setting) -> str:
    """The default of a kind, where it is not that of the table."""
    words = kind.table[setting.name].default_in_words
    return f" ({words})" if words != setting.default_in_words else ""


def estimators() -> Iterable[str]:
    """Backcast's own estimators."""
    yield from ("| `model` | description | of | direction |", "|---|---|---|---|")
    for each in ESTIMATORS.values():
        if each.is_builtin:
            looks = ("forward", each.not_forward), ("backward", each.not_backward)
            words = " and ".join(way for way, why_not in looks if not why_not)
            of = "features" if each.linear else "observations, by a network" if each.network else "states"
            yield f"| `{each.name}` | {each.summary} | {of} | {words} |"


def worlds() -> Iterable[str]:
    """All keys of Backcast's own kinds of worlds: meaning, and what is allowed."""
    yield from ("| kind | key | meaning | allowed |", "|---|---|---|---|")
    for kind in WORLDS.values():
        for number, key in enumerate(kind.keys.values() if kind.is_builtin else ()):
            name = "" if number else f"`{kind.name}` "
            yield f"| {name}{_about(key, _default(kind, key))} |"


def _default(kind: WorldKind, key: Setting) -> str:
    if key.name == "seed" and kind.drawn:
        return " (every seed of the study draws its own)"
    return " (needed)" if key.name in kind.required else ""


def metrics() -> Iterable[str]:
    """Backcast's own metrics."""
    yield from ("| metric | label | measured in | better |", "|---|---|---|---|")
    for each in METRICS.values():
        if each.is_builtin:
            yield f"| `{each.name}` | {each.label} | {each.purpose} | {each.better.partition(' ')[0]} |"


def glossary() -> Iterable[str]:
    """All words of the glossary, with anchors to link to."""
    for term in sorted(GLOSSARY, key=lambda term: term.name.strip("`").lower()):
        yield from (f"{term.name}", f": {term.meaning}", "")


def _about(setting: Setting, default: str = "") -> str:
    if not default and setting.default_in_words:
        default = f" ({setting.default_in_words})"
    return f"| `{setting.name}` | {setting.meaning} | {setting.allowed}{default}"


def page_with_tables(text: str) -> str:
    """The page with its tables as they should be: between `<!-- name: … -->` and `<!-- end of name -->`."""
    for table in (settings, estimators, worlds, metrics, glossary):
        name = table.__name__
        begin, end = f"<!-- {name}: written by docs/tables.py -->", f"<!-- end of {name} -->"
        content = "\n".join([begin, *table(), end])
        text = re.sub(f"{begin}.*?{end}", lambda _, content=content: content, text, flags=re.S)
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(page_with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
