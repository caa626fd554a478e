"""The tutorials run, print what they say and draw what they show; and they become notebooks."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(page for page in (DOCS / "tutorials").glob("*.md") if page.stem != "index")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_says(page, tmp_path):
    command = [sys.executable, str(DOCS / "notebooks.py"), "check", str(page)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}  # the same numbers, and nothing to compile
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_is_run_or_is_its_output(page):
    made = runpy.run_path(str(DOCS / "notebooks.py"))
    text = page.read_text()
    assert text.count("```") == sum(2 + 2 * bool(stated) for *_, stated in made["BLOCK"].findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_notebooks_are_those_of_the_pages(page):
    convert = runpy.run_path(str(DOCS / "notebooks.py"))["convert"]
    assert page.with_suffix(".ipynb").read_text() == convert(page), "run: make tutorials"


def test_another_output_is_told(tmp_path, monkeypatch):
    made = runpy.run_path(str(DOCS / "notebooks.py"))
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\n![it](images/it.svg)\n")
    wrong = made["check"](page)
    assert "is printed\n1\n\nand not\n2\n" in wrong[0]
    assert wrong[1:] == ["page.md: it.svg is not drawn"]


def test_a_page_becomes_a_notebook():
    made = runpy.run_path(str(DOCS / "notebooks.py"))
    page = "# Title\n\n```python\n# file: a.py\nx = 1\n```\n\nThen\n\n```sh\nls\n```\n\n```text\na.py\n```\n"
    page += "\n```python\nprint(x)\n```\n"
    cells = made["notebook"](page)["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == [
        ("markdown", "# Title"),
        ("code", "%%writefile a.py\n# file: a.py\nx = 1"),
        ("markdown", "Then"),
        ("code", "!ls"),
        ("code", "print(x)"),
    ]
    assert len({cell["id"] for cell in cells}) == len(cells)
