"""Docstrings as reStructuredText: formulas have bars and stars, and code is indented after a colon."""

import re
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("Args", "Attributes", "Example", "Examples", "Raises", "Returns", "Yields")
BARS = re.compile(r"\|(?=\S)([^|`]+?)(?<=\S)\|")
COLON = "\ue000"  # a character for private use
STAR = re.compile(r"(?<=[\w'])\*(?=[\w(])")


def rewrite(lines: list[str]) -> list[str]:
    """The same lines, with bars and stars of formulas escaped and indented code marked as such."""
    found = []
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        later = next((each for each in lines[place + 1 :] if each.strip()), "")
        follows = (
            len(later) - len(later.lstrip()) >= indent + 4 and not (lines[place + 1 : place + 2] or ["x"])[0].strip()
        )
        if not line.lstrip().startswith((">>>", "...")):
            line = STAR.sub(r"\\*", BARS.sub(r"\\|\1\\|", line))
        if line.rstrip().endswith(":") and follows and line.strip()[:-1] not in SECTIONS:
            line = line.rstrip() + ":"
        found.append(line)
    return found


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place, before its sections are read."""
    lines[:] = rewrite(lines)
    if what in ("property", "attribute", "data"):  # napoleon takes what is before a colon for a type
        lines[:1] = [line.replace(":", COLON) for line in lines[:1]]


def restore(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Restore the colons."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect before and after napoleon."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-process-docstring", restore, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
