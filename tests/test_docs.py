"""What the documentation shows is run, and prints what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
]


def flat(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("block", BLOCKS)
def test_python_blocks_run_and_print_what_their_comments_say(block, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.printoptions():
        exec(compile(block, "documentation", "exec"), {})
    printed = flat(capsys.readouterr().out)
    for promised in re.findall(r"#.*?: +(\[.*\])$", block, re.M):
        assert flat(promised) in printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_kind_and_setting_is_described():
    """`backcast list` has a line and a reference for each kind, docs/agents.md a word on each kind and setting."""
    from backcast.kinds import KINDS
    from backcast.settings import CHECKS

    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    own = {name: kind for name, kind in KINDS.items() if (kind.build.__module__ or "").startswith("backcast.")}
    assert all(kind.summary.endswith(".") and kind.reference for kind in own.values())
    assert [name for name in own if f"`{name}`" not in page and name not in ("td", "q")] == []
    assert [name for name in CHECKS if f"`{name}" not in page] == []
