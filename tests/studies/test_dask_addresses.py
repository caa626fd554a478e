"""What the dask engine is told before there is a scheduler."""

import importlib.util

import pytest

from backcast.core.errors import InputError
from backcast.studies.engines.on_dask import DaskEngine

pytest.importorskip("distributed")
pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("address", ["", "foo", "127.0.0.1", "tcp://127.0.0.1", "tcp://:8786", "8786", "a b:1"])
def test_an_address_without_a_port_is_refused_at_once(address):
    expected = "expected an address with a port, such as tcp://10.0.0.1:8786"
    with pytest.raises(InputError, match=f"--scheduler: '{address}' given, {expected}"):
        DaskEngine(address)


@pytest.mark.parametrize("address", ["localhost:1", "tcp://10.0.0.1:8786", "tls://node-1.lab:8786", "tcp://[::1]:8786"])
def test_addresses_with_a_port_are_accepted(address):
    DaskEngine(address)


def test_without_dask_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"dask\.distributed is not installed; pip install 'backcast\[cluster\]'"):
        DaskEngine()
