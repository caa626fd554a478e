"""What the documentation shows is run, and prints what it says."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.S | re.M)  # and what it prints
EXAMPLES = [
    pytest.param(
        *found.groups(default=""), id=f"{page.name}-{i}", marks=[pytest.mark.slow] if page.name == "neural.md" else []
    )
    for page in PAGES
    for i, found in enumerate(EXAMPLE.finditer(page.read_text()))
]


@pytest.mark.parametrize(("block", "stated"), EXAMPLES)
def test_python_blocks_print_what_the_text_block_after_them_says(block, stated, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.printoptions():
        exec(compile(block, "documentation", "exec"), {})
    assert capsys.readouterr().out == stated


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_is_known_to_be_an_example_or_its_output(page):
    """Otherwise a mistake in a fence, or words between an example and its output, would leave it unchecked."""
    text = page.read_text()
    found = [stated for _, stated in EXAMPLE.findall(text)]
    assert text.count("```") == 2 * (len(found) + len([stated for stated in found if stated]))


@pytest.mark.parametrize("page", PAGES + TUTORIALS, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_contents_of_the_site():
    listed = (ROOT / "docs" / "index.md").read_text()
    tutorials = (ROOT / "docs" / "tutorials" / "index.md").read_text()
    assert [page.stem for page in PAGES[1:] if f"\n{page.stem}\n" not in listed and page.stem != "index"] == []
    assert [page.stem for page in TUTORIALS if f"\n{page.stem}\n" not in tutorials and page.stem != "index"] == []


def test_broken_links_of_the_site_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">1</a><a href="#here">2</a></p>')
    (tmp_path / "b.html").write_text(
        '<a href="a.html#gone">3</a><img src="lost.svg"><a href="https://example.org">4</a>'
    )
    broken = runpy.run_path(str(ROOT / "docs" / "check_links.py"))["broken"]
    assert broken(tmp_path) == ["a.html: b.html#there", "b.html: a.html#gone", "b.html: lost.svg"]


def test_public_names_without_a_docstring_are_found():
    undocumented = runpy.run_path(str(ROOT / "docs" / "_ext" / "public_names.py"))["undocumented"]

    class Silent:
        def says_nothing(self):
            return 1

        def speaks(self):
            """It does."""

    assert undocumented("Silent", Silent) == ["Silent", "Silent.says_nothing"]
    assert undocumented("speaks", Silent.speaks) == []


def test_formulas_and_code_of_docstrings_become_restructured_text():
    pytest.importorskip("sphinx")
    rewrite = runpy.run_path(str(ROOT / "docs" / "_ext" / "docstrings.py"))["rewrite"]
    assert rewrite(["the largest |v(s)| of P*(s), *say*:", "", "    import x", "Args:", "    x: a|b"]) == [
        r"the largest \|v(s)\| of P\*(s), *say*::",
        "",
        "    import x",
        "Args:",
        "    x: a|b",
    ]


def test_every_kind_and_setting_is_described():
    """`backcast list` has a line and a reference for each kind, docs/agents.md a word on each kind and setting."""
    from backcast.agents.kinds import KINDS
    from backcast.agents.settings import SETTINGS

    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    own = {name: kind for name, kind in KINDS.items() if kind.is_builtin}
    assert all(kind.summary.endswith(".") and kind.reference for kind in own.values())
    assert [name for name in own if f"`{name}`" not in page and name not in ("td", "q")] == []
    assert [name for name in SETTINGS if f"`{name}" not in page] == []


def test_tables_are_those_that_agents_and_worlds_are_checked_by():
    tables = runpy.run_path(str(ROOT / "docs" / "tables.py"))
    pages = [page.read_text(encoding="utf-8") for page in tables["PAGES"]]
    assert sum(page.count("<!-- end of ") for page in pages) == 5
    assert pages == [tables["page_with_tables"](page) for page in pages], "run: python docs/tables.py"


def test_the_kubernetes_example_starts_commands_that_exist(tmp_path):
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "examples" / "kubernetes" / "backcast.yaml").read_text()
    parts = {(part["kind"], part["metadata"]["name"]): part for part in yaml.safe_load_all(text)}
    (port,) = parts["Service", "backcast-scheduler"]["spec"]["ports"]
    address = f"tcp://backcast-scheduler:{port['port']}"
    for what in ("scheduler", "worker"):
        (container,) = parts["Deployment", f"backcast-{what}"]["spec"]["template"]["spec"]["containers"]
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--help"]
        known = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert container["command"][:2] == ["dask", what]
        assert all(word in known for word in container["command"] if word.startswith("--"))
        assert what == "scheduler" or address in container["command"]
    pod = parts["Deployment", "backcast-worker"]["spec"]["template"]["spec"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert {"name": "BACKCAST_CACHE_DIR", "value": mount["mountPath"]} in pod["containers"][0]["env"]
    assert {"name": mount["name"], "emptyDir": {}} in pod["volumes"]
    (sweep,) = parts["Job", "backcast-sweep"]["spec"]["template"]["spec"]["containers"]
    assert address in sweep["args"]
    given = [
        str(ROOT / "examples" / "my-study.toml") if word.startswith("/study") else word for word in sweep["command"]
    ]
    given = [str(tmp_path / "out") if word == "/results" else word for word in given[1:]]
    command = [sys.executable, "-m", "backcast", *given, *sweep["args"], "--dry-run"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "80 runs, of which 80 are to be made" in result.stdout, result.stderr
