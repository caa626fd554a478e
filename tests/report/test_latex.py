"""What `backcast report --latex` writes: tables, methods, figures and references for a paper."""

import re

import pytest

from backcast import InputError
from backcast.report import agent_tables, citation, latex, medium, page
from backcast.report.figures import draw
from backcast.report.methods import methods
from backcast.studies import check_study, results
from backcast.studies.runner import run_study
from backcast.studies.store import Store

pytestmark = pytest.mark.interpreted

STUDY = check_study(
    {
        "name": "small_one",
        "title": "Fan-in & 100 % noise",
        "episodes": 6,
        "updates": 300,
        "seeds": 3,
        "worlds": [{"kind": "chain", "levels": [4, 2, 2]}, {"kind": "maze", "text": "S.G", "slip": 0.2}],
        "agents": [
            {"kind": "td", "only": "prediction"},
            {"kind": "q", "only": "control", "label": "Q_1"},
            {"kind": "backward", "frame": "current", "alpha": 0.5},
        ],
        "plots": ["error-by-agent", "error-against-updates"],
    },
    "small_one",
)
SPECIAL = re.compile(r"(?<!\\)[&%$#_^~]")


@pytest.fixture(name="found", scope="module")
def a_small_study(tmp_path_factory):
    directory = tmp_path_factory.mktemp("results")
    run_study(Store(directory, create=True), STUDY, seeds=3)
    return directory, results(directory)


@pytest.fixture(name="paper", scope="module")
def what_was_written(found):
    directory, them = found
    return latex.write_latex(directory, them).parent


def tabulars(text):
    """The specification of columns and the rows of each table, of which each row is its cells."""
    for columns, body in re.findall(r"\\begin\{tabular\}\{@\{\}(.*?)@\{\}\}\n(.*?)\\end\{tabular\}", text, re.S):
        lines = [line for line in body.splitlines() if not re.fullmatch(r"\\(top|mid|bottom)rule", line)]
        assert all(line.endswith(r" \\") for line in lines)
        yield columns, [re.split(r"(?<!\\)&", line.removesuffix(r" \\")) for line in lines]


def test_a_table_for_each_world_and_one_at_equal_updates(found, paper):
    (result,) = found[1]
    text = (paper / "small_one-tables.tex").read_text()
    written = list(tabulars(text))
    assert len(written) == 4
    for columns, rows in written:
        assert {len(row) for row in rows} == {len(columns)}
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 4
    stated = agent_tables.table(result, result.worlds[1])
    head, q, _ = written[2][1]
    assert head[0].strip() == "agent"
    assert q[0].strip() == r"\texttt{Q\_1}"
    assert [cell.strip() for cell in q[1:3]] == [latex.number(cell) for cell in stated["rows"][0]["cells"]]


def test_what_is_not_latex_is_escaped():
    assert latex.escape("50 % of a_b & c#1 {x} ~ λ s′") == (
        r"50 \% of a\_b \& c\#1 \{x\} \textasciitilde{} \ensuremath{\lambda} s\ensuremath{'}"
    )
    assert latex.escape("a\\b") == r"a\textbackslash{}b"
    assert latex.number("-0.5 [-1, 0]") == r"\ensuremath{-}0.5 [\ensuremath{-}1, 0]"


def test_every_file_is_balanced_and_has_no_bare_special_characters(paper):
    for path in paper.glob("*.tex"):
        text = path.read_text()
        assert text.replace(r"\{", "").count("{") == text.replace(r"\}", "").count("}"), path.name
        begun, ended = (re.findall(rf"\\{word}\{{(.*?)\}}", text) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended)
        text.encode("ascii")  # pdfLaTeX has no letters for the rest
    words = (paper / "small_one-methods.tex").read_text()
    assert not SPECIAL.search(re.sub(r"\\ensuremath\{[^}]*\}", "", words))


def test_the_document_finds_all_its_parts(paper):
    text = (paper / "main.tex").read_text()
    assert r"\section{Fan-in \& 100 \% noise}" in text
    assert all((paper / f"{name}.tex").exists() for name in re.findall(r"\\input\{(.*?)\}", text))
    included = re.findall(r"\\includegraphics\[.*?\]\{(.*?)\}", text)
    assert len(included) == 2
    assert all((paper / name).exists() for name in included)
    (keys,) = re.findall(r"\\nocite\{(.*?)\}", text)
    entries = re.findall(r"^@\w+\{(.*),$", (paper / "references.bib").read_text(), re.M)
    assert keys.split(",") == entries == [work.key for work in citation.WORKS]


@pytest.mark.parametrize(("given", "wide", "columns"), [(3.25, 6.75, "twocolumn,"), (5.5, 5.5, "")])
def test_figures_are_as_wide_as_a_column_or_both(found, tmp_path, given, wide, columns):
    written = latex.write_latex(tmp_path, found[1], width=given).parent
    assert f"\\documentclass[{columns}10pt]" in (written / "main.tex").read_text()
    widths = {}
    for path in written.glob("*.pdf"):
        (box,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", path.read_bytes())
        widths[path.stem] = float(box[0]) / 72
        (svg,) = re.findall(r'<svg[^>]*? width="([\d.]+)pt"', path.with_suffix(".svg").read_text()[:3000])
        assert float(svg) == pytest.approx(float(box[0]))
    assert widths == pytest.approx({"small_one-error-by-agent": given, "small_one-error-against-updates": wide})


def test_figures_for_print_have_the_same_bytes_each_time_and_leave_those_of_the_page_alone(found, paper, tmp_path):
    (result,) = found[1]
    again = latex.write_latex(tmp_path, found[1]).parent
    for path in paper.glob("*.pdf"):
        assert path.read_bytes() == (again / path.name).read_bytes()
    assert draw("error-by-agent", result).get_figwidth() == 12
    with medium.for_print(3.25):
        figure = draw("error-by-agent", result)
    assert (figure.get_figwidth(), medium.medium().column) == (3.25, None)
    sizes = {text.get_fontsize() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))}
    assert 7 <= min(size for size in sizes) < 10


@pytest.mark.parametrize("width", [0.5, 40])
def test_a_width_that_no_column_has_is_refused(found, width):
    with pytest.raises(InputError, match=rf"width: {width:g} given, expected 2 to 10 inches"):
        latex.write_latex(*found, width=width)


def test_the_methods_paragraph_says_what_the_settings_are(found):
    (result,) = found[1]
    text = " ".join(methods(result))
    assert "We ran 3 agents (td; backward@current; Q_1) in 2 environments" in text
    assert "with 3 independent seeds each; a run lasted 6 episodes or until it had made 300 value updates." in text
    assert "α = 0.5 to 1" in text
    assert "ε = 0.5" in text
    assert "95 % studentised bootstrap intervals (10,000 resamples of seeds)" in text
    assert "Intervals are not corrected for the number of comparisons." in text
    made = [result.value_updates(world, agent) for world in result.worlds for agent in result.agents(world)]
    assert f"between {min(made):,.0f} (" in text
    assert f"and {max(made):,.0f} (" in text


def test_the_methods_paragraph_counts_what_was_searched_and_gives_its_symbol(tmp_path):
    worlds = [{"kind": "maze", "text": "S.G"}, {"kind": "maze", "text": "S.G", "slip": 0.2}]
    agents = [{"kind": "q"}, {"kind": "dyna", "grid": {"alpha": [0.5, 1.0], "sample": [1, 2]}}]
    study = check_study({"name": "s", "episodes": 2, "seeds": 2, "worlds": worlds, "agents": agents}, "s")
    run_study(Store(tmp_path, create=True), study, seeds=2)
    (result,) = results(tmp_path)
    assert "We searched α, sample over 4 combinations of agent and settings." in " ".join(methods(result))


def test_the_page_has_contents_explains_its_words_and_labels_cells_for_a_phone(found):
    text = page.write_report(*found).read_text()
    targets = re.findall(r'<li><a href="#(.*?)">', text)
    assert targets == ["small_one", "words", "versions"]
    assert all(text.count(f'id="{target}"') == 1 for target in targets)
    words = re.findall(r"<dt>(.*?)</dt>", text)
    assert {"RMSVE", "IQM", "value update", "<code>pure:</code>", "frame"} <= set(words)
    body = re.findall(r"<td class=\"number\"( data-label=\"[^\"]+\")?", text)
    assert len(body) > 10
    assert all(body)
    assert "We ran 3 agents" in text


def test_claims_are_a_table(found):
    class Decisive:
        outcome = "-1.0 [-2.0, -0.5] steps per episode"

    class Verdict:
        number, sentence, verdict, seeds, decisive = 7, "p & q", "contradicted", 20, Decisive()

    ((columns, (_, row)),) = tabulars(latex.claims_table([Verdict()]))
    assert columns.startswith("rp{")
    assert [cell.strip() for cell in row] == [
        "7",
        r"p \& q",
        "contradicted",
        r"\ensuremath{-}1.0 [\ensuremath{-}2.0, \ensuremath{-}0.5] steps per episode",
        "20",
    ]
