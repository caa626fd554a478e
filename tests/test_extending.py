"""The planner that docs/extending.md shows is short, and passes the suite that it recommends."""

import re
from pathlib import Path

from backcast.kinds import KINDS
from backcast.testing import AgentConformance, ModelConformance

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
EXAMPLE = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S).group(1)

if "likeliest" not in KINDS:
    exec(compile(EXAMPLE.split("for kind in")[0], str(PAGE), "exec"), {"__name__": "docs_example"})


def test_the_example_is_under_forty_lines():
    assert len(EXAMPLE.strip().splitlines()) <= 45
    planner = EXAMPLE[EXAMPLE.index("@part") : EXAMPLE.index("for kind in")]
    assert len(planner.strip().splitlines()) < 40


class TestLikeliest(AgentConformance, ModelConformance):
    kind = "likeliest"
