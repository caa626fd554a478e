"""What is beside the package: the container file and the templates say what is true of it."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from commands import a_command_line  # noqa: F401

ROOT = Path(__file__).parent.parent


def instructions():
    """The instructions of the container file, with what is continued on the next line."""
    lines = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#")]


def test_the_container_copies_what_there_is_and_installs_extras_that_exist():
    given = [words for name, words in instructions() if name == "COPY"]
    sources = [source for words in given for source in words.split()[:-1]]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {project["readme"], *project["license-files"], "pyproject.toml", "src"} <= set(sources)
    (extras,) = (re.findall(r"/source\[(.*?)\]", words) for name, words in instructions() if "/source[" in words)
    assert set(extras[0].split(",")) <= set(project["optional-dependencies"])


def test_the_containers_commands_exist(cli):
    ((_, words),) = [each for each in instructions() if each[0] == "CMD"]
    program, command, *options = json.loads(words)
    code, printed, _ = cli(command, "--help")
    assert (program, code) == ("backcast", 0)
    assert [each for each in options if each.startswith("--") and each not in printed] == []
    (port,) = [words for name, words in instructions() if name == "EXPOSE"]
    assert options[options.index("--port") + 1] == port
    (study,) = [line for line in (ROOT / "Containerfile").read_text().splitlines() if "sweep" in line]
    said = shlex.split(study.removeprefix("#"))
    code, printed, _ = cli(said[said.index("sweep")], "--help")
    assert (code, said[-2] in printed) == (0, True)


@pytest.mark.parametrize("name", ["ISSUE_TEMPLATE/bug.md", "ISSUE_TEMPLATE/idea.md"])
def test_templates_of_issues_have_a_name_and_say_what_they_are_for(name):
    yaml = pytest.importorskip("yaml")
    _, head, body = (ROOT / ".github" / name).read_text().split("---\n")
    assert {"name", "about"} <= yaml.safe_load(head).keys()
    assert "**" in body
