"""Tutorials are pages whose blocks are run in order: check what they print, write it down, or make notebooks of them.

    python docs/notebooks.py check docs/tutorials/own-mdp.md     # in this directory; fails if something else is printed
    python docs/notebooks.py write docs/tutorials/*.md           # writes outputs into the pages, and their pictures
    python docs/notebooks.py convert docs/tutorials/*.md         # writes a notebook beside each page

A ```python block is executed, one that begins with `# file: NAME` is written to that file, and a ```sh block is run by
the shell. A ```text block right after it has what it prints.
"""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.S | re.M)
FILE = re.compile(r"# file: (\S+)\n")


def run_block(language: str, source: str, names: dict[str, Any]) -> str:
    """Run a block in this directory; what it prints."""
    file = FILE.match(source)
    if file:
        Path(file[1]).write_text(source, encoding="utf-8")
        return ""
    if language == "sh":
        there = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            source, shell=True, check=True, text=True, stdout=subprocess.PIPE, env=os.environ | {"PATH": there}
        ).stdout
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(source, "tutorial", "exec"), names)
    return printed.getvalue()


def run_page(text: str, on_output: Callable[[str, str, str], None]) -> None:
    """Run the blocks of a page in order, and tell what each should print and what it prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    sys.path.insert(0, "")
    for language, source, stated in BLOCK.findall(text):
        on_output(source, stated, run_block(language, source, names))


def check(page: Path) -> list[str]:
    """What is printed otherwise than the page says, and pictures that it shows and are not drawn."""
    text, wrong = page.read_text(encoding="utf-8"), []

    def compare(source: str, stated: str, printed: str) -> None:
        if printed != stated:
            wrong.append(f"{page.name}: after\n{source}\nis printed\n{printed}\nand not\n{stated}")

    run_page(text, compare)
    shown = re.findall(r"!\[[^]]*\]\(images/([^)]+)\)", text)
    return wrong + [f"{page.name}: {name} is not drawn" for name in shown if not Path(name).exists()]


def write(page: Path) -> None:
    """Write what the blocks of a page print into the page, and its pictures beside it."""
    text, outputs = page.read_text(encoding="utf-8"), []
    images = page.parent / "images"
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        run_page(text, lambda _, __, printed: outputs.append(printed))
        for picture in Path().glob("*.svg"):
            shutil.copy(picture, images)

    def with_output(found: re.Match[str]) -> str:
        printed = outputs.pop(0)
        block = f"```{found[1]}\n{found[2]}```\n"
        return block + (f"\n```text\n{printed}```\n" if printed else "")

    page.write_text(BLOCK.sub(with_output, text), encoding="utf-8")


def notebook(text: str) -> dict[str, Any]:
    """A page as a Jupyter notebook, without outputs."""
    cells, end = [], 0
    for found in BLOCK.finditer(text):
        cells += [("markdown", text[end : found.start()]), ("code", _as_cell(found[1], found[2]))]
        end = found.end()
    cells.append(("markdown", text[end:]))
    extra: dict[str, Any] = {"execution_count": None, "outputs": []}
    return {
        "cells": [
            {
                "id": f"cell-{number}",
                "cell_type": kind,
                "metadata": {},
                "source": source.strip().splitlines(keepends=True),
            }
            | (extra if kind == "code" else {})
            for number, (kind, source) in enumerate(cells)
            if source.strip()
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _as_cell(language: str, source: str) -> str:
    if language == "sh":
        return "".join(f"!{line}\n" for line in source.splitlines())
    file = FILE.match(source)
    return f"%%writefile {file[1]}\n{source}" if file else source


def convert(page: Path) -> str:
    """The text of a page's notebook."""
    return json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n"


def main(command: str, *given: str) -> int:
    """Run a command of the module's docstring; its exit code."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # pictures have no date
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "tutorials"
    paths = [Path(each).resolve() for each in given]
    if command == "convert":
        for page in paths:
            page.with_suffix(".ipynb").write_text(convert(page), encoding="utf-8")
    elif command == "write":
        for page in paths:
            write(page)
    else:
        wrong = [each for page in paths for each in check(page)]
        print("\n".join(wrong))
        return bool(wrong)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
