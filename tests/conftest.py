import os
import signal

import pytest
from hypothesis import settings

# Before NumPy is imported: workers of pytest-xdist share the cores, and threads of BLAS that wait for a core spin.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

settings.register_profile("backcast", deadline=None, print_blob=True)
settings.load_profile("backcast")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: commands under test must hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _forget_what_is_registered():
    from registries import unchanged_registries  # imports NumPy

    with unchanged_registries():
        yield
