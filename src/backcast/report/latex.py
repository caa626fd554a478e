"""`backcast report --latex`: tables, a methods paragraph, figures and references for a paper.

DIR/paper holds, for each study, `NAME-tables.tex` (booktabs), `NAME-methods.tex` and its figures as PDF and SVG, at the
width of a column; `claims.tex`, `references.bib`, and `main.tex`, which shows them all and can be compiled.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from backcast.core.errors import InputError
from backcast.core.files import atomic_path
from backcast.report import medium
from backcast.report.agent_tables import MOST_AGENTS, many_agents, table
from backcast.report.citation import PAPER, WORKS, bibtex
from backcast.report.figures import draw, plots_of, save_for_print
from backcast.report.methods import methods
from backcast.studies.claims import Verdict, judge
from backcast.studies.results import Results

PLAIN = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}",
    '"': "''",
    "–": "--",
    "…": r"\dots{}",
    "′": r"\ensuremath{'}",
    "−": r"\ensuremath{-}",
    "×": r"\ensuremath{\times}",
    "÷": r"\ensuremath{\div}",
    "±": r"\ensuremath{\pm}",
    "→": r"\ensuremath{\rightarrow}",
    "←": r"\ensuremath{\leftarrow}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "∞": r"\ensuremath{\infty}",
    "√": r"\ensuremath{\surd}",
    "·": r"\ensuremath{\cdot}",
    "ₘ": r"\ensuremath{_m}",
    "ₚ": r"\ensuremath{_p}",
    "α": r"\ensuremath{\alpha}",
    "β": r"\ensuremath{\beta}",
    "γ": r"\ensuremath{\gamma}",
    "δ": r"\ensuremath{\delta}",
    "ε": r"\ensuremath{\varepsilon}",
    "λ": r"\ensuremath{\lambda}",
    "π": r"\ensuremath{\pi}",
    "τ": r"\ensuremath{\tau}",
    "θ": r"\ensuremath{\theta}",
}  # pdfLaTeX lacks characters for the others; XeLaTeX and LuaLaTeX have them


def escape(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(PLAIN.get(character, character) for character in text)


def number(text: str) -> str:
    """A cell of numbers as LaTeX: a minus, not a hyphen, before digits."""
    return escape(text.replace("-", "−"))


def write_latex(directory: str | Path, found: Sequence[Results], width: float = medium.COLUMN) -> Path:
    """Write DIR/paper (tables, methods, figures `width` inches wide, references); return the path of its main file.

    Figures with several panels side by side span both columns of a two-column page.
    """
    if not medium.NARROWEST <= width <= medium.WIDEST:
        raise InputError(f"width: {width:g} given, expected {medium.NARROWEST:g} to {medium.WIDEST:g} inches")
    if not found:
        raise InputError(f"{directory}: no finished results to report on; run: backcast reproduce --out {directory}")
    paper = Path(directory) / "paper"
    paper.mkdir(exist_ok=True)
    verdicts = sorted((verdict for result in found for verdict in judge(result)), key=lambda verdict: verdict.number)
    parts = []
    if verdicts:
        _write(paper / "claims.tex", claims_table(verdicts))
        parts.append("\\section{Claims}\n\\input{claims}")
    for result in found:
        _write(paper / f"{result.name}-methods.tex", escape(" ".join(methods(result))) + "\n")
        _write(paper / f"{result.name}-tables.tex", "\n".join(study_tables(result)))
        figures = "\n".join(_figures(result, paper, width))
        title = escape(result.study.title or result.name)
        inputs = f"\\input{{{result.name}-methods}}\n{figures}\n\\input{{{result.name}-tables}}\n\\clearpage"
        parts.append(f"\\section{{{title}}}\n{inputs}")
    _write(paper / "references.bib", bibtex() + "\n")
    main = paper / "main.tex"
    _write(main, _document(parts, width))
    return main


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")


def _document(parts: Sequence[str], width: float) -> str:
    columns = "" if width > medium.ONE_COLUMN else "twocolumn,"
    keys = ",".join(work.key for work in WORKS)
    return "\n".join(
        [
            f"\\documentclass[{columns}10pt]{{article}}",
            *(f"\\usepackage{{{package}}}" for package in ("booktabs", "graphicx", "amsmath")),
            "\\usepackage[utf8]{inputenc}",
            "\\usepackage[T1]{fontenc}",
            "\\usepackage[margin=0.8in]{geometry}",
            "\\begin{document}",
            f"\\nocite{{{keys}}}",
            *parts,
            "\\bibliographystyle{plain}",
            "\\bibliography{references}",
            "\\end{document}",
            "",
        ]
    )


def booktabs(columns: str, head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, label: str) -> str:
    """A floating table over the full width; cells are LaTeX."""
    lines = [" & ".join(row) + r" \\" for row in rows]
    return "\n".join(
        [
            r"\begin{table*}[tbp]",
            r"\centering\footnotesize",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table*}",
            "",
        ]
    )


def study_tables(result: Results) -> Iterable[str]:
    """A table for each world of a study, and one at equal numbers of value updates if there is a budget."""
    if many_agents(result):
        yield f"% more than {MOST_AGENTS} settings: see backcast best and backcast export\n"
        return
    for world in result.worlds:
        yield from _world_tables(result, world)


def _world_tables(result: Results, world: str) -> Iterable[str]:
    found = table(result, world)
    where = escape(result.picture(world).title)
    metrics, judge_by = [escape(metric) for metric in found["metrics"]], escape(found["judged_by"])
    intervals = f"{result.seeds} seeds; brackets: 95\\,\\% bootstrap intervals" if result.seeds > 1 else "one seed"
    rows = []
    for row in found["rows"]:
        lost = rf"\multicolumn{{{len(metrics)}}}{{r}}{{{escape(row['diverged'])}}}"
        cells = [lost] if row["diverged"] else [number(cell) for cell in row["cells"]]
        rows.append([_agent(row["agent"]), *cells, number(row["iqm"]), escape(row["wins"]), row["updates"]])
    yield booktabs(
        "l" + "r" * (len(metrics) + 3),
        ["agent", *metrics, "IQM", "wins", "value updates"],
        rows,
        f"{where}: means over episodes and seeds ({intervals}). IQM: interquartile mean over seeds of {judge_by}"
        f" ({escape(found['better'])}). Wins: share of seeds on which an agent is better than"
        f" {_agent(found['baseline'])}.",
        f"{result.name}-{world}",
    )
    equal = found["equal"]
    if equal:
        yield booktabs(
            "l" + "r" * (len(equal["places"]) + 1),
            ["agent", *(f"after {place}" for place in equal["places"]), "updates per step"],
            [[_agent(row["agent"]), *map(number, row["cells"]), number(row["per_step"])] for row in equal["rows"]],
            f"{where}: {escape(equal['metric'])} after equal numbers of value updates ({intervals}).",
            f"{result.name}-{world}-equal",
        )


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """The verdicts on the paper's claims."""
    rows = [
        [str(each.number), escape(each.sentence), each.verdict, number(each.decisive.outcome), str(each.seeds)]
        for each in verdicts
    ]
    return booktabs(
        r"rp{.36\textwidth}lp{.3\textwidth}r",
        ["", "claim", "verdict", "decisive comparison [95\\,\\%]", "seeds"],
        rows,
        rf"Claims of Chelu, Precup and van Hasselt~\cite{{{PAPER.key}}}, judged by paired differences over seeds.",
        "claims",
    )


def _agent(name: str) -> str:
    return rf"\texttt{{{escape(name)}}}"


def _figures(result: Results, paper: Path, width: float) -> Iterable[str]:
    """Draw a study's figures for print, and include them."""
    for plot in plots_of(result.study):
        if many_agents(result) and plot != "sensitivity":
            continue
        with medium.for_print(width) as chosen:
            figure = draw(plot, result)
            if figure is None:
                continue
            stem = f"{result.name}-{plot}"
            save_for_print(figure, paper, stem)
            environment = "figure*" if chosen.spans(figure) else "figure"
        yield "\n".join(
            [
                rf"\begin{{{environment}}}[tbp]",
                r"\centering",
                rf"\includegraphics[width=\linewidth]{{{stem}.pdf}}",
                rf"\caption{{{escape(result.study.title or result.name)}.}}",
                rf"\label{{fig:{stem}}}",
                rf"\end{{{environment}}}",
            ]
        )
