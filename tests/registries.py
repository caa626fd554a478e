"""Kinds and metrics that a test registers, forgotten when it ends."""

import pytest

from backcast.agents.kinds import KINDS
from backcast.drivers.metrics import METRICS
from backcast.worlds.kinds import WORLDS


@pytest.fixture(name="registries")
def registries_as_they_were():
    """Whatever is registered during a test, afterwards the registries are as they were."""
    before = [(registry, dict(registry)) for registry in (KINDS, WORLDS, METRICS)]
    yield
    for registry, content in before:
        registry.clear()
        registry.update(content)
