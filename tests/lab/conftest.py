import pytest

from backcast.lab import memory


@pytest.fixture(autouse=True)
def _room_for_the_code_of_all_other_tests(monkeypatch):
    """A process that runs tests holds the compiled code of those before, which no lab would."""
    monkeypatch.setattr(memory, "MOST", 100_000)
