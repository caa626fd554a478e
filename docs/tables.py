"""Write the table of settings into docs/agents.md, from the one that agents are checked by: python docs/tables.py."""

from pathlib import Path

from backcast.agents.kinds import KINDS
from backcast.agents.settings import COMMON, SETTINGS, Setting

PAGE = Path(__file__).parent / "agents.md"
BEGIN, END = "<!-- settings: written by docs/tables.py -->", "<!-- end of settings -->"


def settings_table() -> str:
    """All settings of Backcast's own kinds: name, meaning, what is allowed, and who takes it."""
    own = [kind for kind in KINDS.values() if kind.is_builtin]
    rows = ["| setting | meaning | allowed | taken by |", "|---|---|---|---|"]
    rows += [_row(setting, "all kinds, where it applies") for setting in COMMON.values()]
    for name, setting in SETTINGS.items():
        rows.append(_row(setting, ", ".join(f"`{kind.name}`" for kind in own if name in kind.settings)))
    return "\n".join(rows)


def _row(setting: Setting, who: str) -> str:
    default = "" if setting.default is None else f" ({setting.default})"
    return f"| `{setting.name}` | {setting.meaning} | {setting.allowed}{default} | {who} |"


def page_with_table(text: str) -> str:
    """The page with its table as it should be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{settings_table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
