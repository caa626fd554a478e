"""Kinds, worlds, metrics, estimators and settings that tests register are forgotten when they end."""

from contextlib import contextmanager

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS
from backcast.agents.settings import SETTINGS
from backcast.drivers.metrics import METRICS
from backcast.worlds.kinds import WORLDS


@contextmanager
def unchanged_registries():
    """Whatever is registered within, afterwards the registries are as they were."""
    before = [(registry, dict(registry)) for registry in (KINDS, WORLDS, METRICS, ESTIMATORS, SETTINGS)]
    try:
        yield
    finally:
        for registry, content in before:
            registry.clear()
            registry.update(content)
