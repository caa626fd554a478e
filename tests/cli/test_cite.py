"""How to cite Backcast: the command, and the file that says the same to machines."""

import re
from pathlib import Path

import pytest

from backcast import __version__
from backcast.report import citation
from commands import backcast

ROOT = Path(__file__).parents[2]


def test_cite_prints_bibtex_of_backcast_and_the_paper():
    printed = backcast("cite").stdout
    entries = re.findall(r"^@(\w+)\{(\w+),$(.*?)^\}$", printed, re.S | re.M)
    assert [(kind, key) for kind, key, _ in entries] == [
        ("software", "backcast"),
        ("inproceedings", citation.PAPER.key),
    ]
    fields = [dict(re.findall(r"^  (\w+) += \{(.*)\},$", body, re.M)) for *_, body in entries]
    assert fields[0]["version"] == __version__
    assert fields[0]["author"] == "{The Backcast authors}"  # in braces: not a first and a last name
    assert fields[1]["author"] == "Chelu, Veronica and Precup, Doina and van Hasselt, Hado"
    assert fields[1]["title"] == "{Forethought and Hindsight in Credit Assignment}"
    assert all(body.count("{") == body.count("}") for *_, body in entries)


def test_cite_as_text_is_a_line_for_each():
    own, paper = backcast("cite", "--text").stdout.splitlines()
    assert own.startswith("The Backcast authors (2026). Backcast: ")
    assert paper.startswith("Veronica Chelu, Doina Precup and Hado van Hasselt (2020). Forethought and Hindsight")


def test_the_citation_file_says_the_same():
    yaml = pytest.importorskip("yaml")
    stated = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert stated["version"] == __version__
    for work, said in ((citation.BACKCAST, stated), (citation.PAPER, stated["preferred-citation"])):
        assert said["title"] == work.title
        particles = [
            (who.get("name-particle", "") + " " + who.get("family-names", "")).strip() for who in said["authors"]
        ]
        families = [part or who["name"] for part, who in zip(particles, said["authors"], strict=True)]
        assert families == [family for _, family in work.authors]
    assert "cff-version" in stated
