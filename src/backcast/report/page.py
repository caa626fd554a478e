"""`backcast report`: one self-contained HTML page about everything in a directory of results."""

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from backcast import __version__
from backcast.core.errors import InputError
from backcast.core.files import atomic_path, remove_remains
from backcast.report.agent_tables import MOST_AGENTS, many_agents, table
from backcast.report.figures import draw, plots_of, save
from backcast.report.glossary import GLOSSARY
from backcast.report.methods import methods
from backcast.studies import STUDIES
from backcast.studies import results as results_of
from backcast.studies.best import best, explained
from backcast.studies.claims import judge
from backcast.studies.results import Results
from backcast.studies.spec import SENSITIVITY
from backcast.studies.store import machine

MOST_SETTINGS = 20_000  # most characters of a study that are shown


def write_report(directory: str | Path, found: Sequence[Results] | None = None) -> Path:
    """Write DIR/report.html and its figures (DIR/figures/*.svg and .png); return the page's path."""
    directory = Path(directory)
    found = results_of(directory) if found is None else found
    if not found:
        raise InputError(f"{directory}: no finished results to report on; run: backcast reproduce --out {directory}")
    figures = directory / "figures"
    figures.mkdir(exist_ok=True)
    remove_remains(directory)
    remove_remains(figures)
    environment = Environment(
        loader=PackageLoader("backcast.report"), autoescape=select_autoescape(), undefined=StrictUndefined
    )
    environment.filters["inline"] = _inline_markdown
    page = environment.get_template("page.html.j2").render(
        version=__version__,
        machine=machine(),
        studies=[_study(result, figures) for result in found],
        words=[term for term in GLOSSARY if term.in_report],
        verdicts=sorted((verdict for result in found for verdict in judge(result)), key=lambda v: v.number),
    )
    target = directory / "report.html"
    with atomic_path(target) as part:
        part.write_text(page, encoding="utf-8")
    return target


def _study(result: Results, figures: Path) -> dict[str, Any]:
    """The page's data on one study; only on the best settings if it tried many."""
    many = many_agents(result)
    plots = [plot for plot in plots_of(result.study) if plot == SENSITIVITY or not many]
    settings = json.dumps(result.study.model_dump(exclude_defaults=True), indent=1)
    return {
        "name": result.name,
        "title": result.study.title or result.name,
        "seeds": result.seeds,
        "gap": result.gap,
        "missing": [f"{agent} in {world}" for world, agent in result.missing[:MOST_AGENTS]],
        "figures": [
            _inline(save(figure, figures, f"{result.name}-{plot}")[0])
            for plot in plots
            if (figure := draw(plot, result)) is not None
        ],
        "best": _best(result),
        "many": many,
        "methods": " ".join(methods(result)),
        "tables": [] if many else [table(result, world) for world in result.worlds],
        "settings": settings if len(settings) <= MOST_SETTINGS else settings[:MOST_SETTINGS] + "\n…",
        "command": command(result),
    }


def _best(result: Results) -> dict[str, Any] | None:
    """The page's data on the best settings of each agent in each world; empty if none were searched."""
    if not any(space.sources for space in result.study.spaces):
        return None
    found = best(result, ("world", "agent"))
    rows = [each.as_row() for each in found]
    warnings = [f"{each.where}: {warning}" for each in found for warning in each.warnings]
    return {"columns": list(rows[0]), "rows": rows, "warnings": warnings, "notes": explained(found)}


def command(result: Results) -> str:
    """The command that reproduces these results."""
    if result.name in STUDIES:
        return f"backcast reproduce {result.name} --seeds {result.seeds}"
    return f"backcast sweep {result.name}.toml --seeds {result.seeds}"


def _inline_markdown(text: str) -> Markup:
    """Convert `backticks` and *asterisks* in Backcast's own text to HTML."""
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escaped))


def _inline(svg: Path) -> dict[str, Any]:
    """An SVG file as an element of the page, without the XML declaration in front of it."""
    text = svg.read_text(encoding="utf-8")
    label = svg.stem.replace("-", " ")
    element = text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)
    return {"svg": Markup(element), "name": svg.name, "label": label}
