"""What `make costs` prints and writes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = """
import subprocess, sys
import numba

@numba.njit
def doubled(x):
    return 2 * x

def test_that_compiles():
    assert doubled(2) == 4

def test_that_starts_a_process():
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
"""


def test_processes_and_kernels_of_a_test_are_counted(tmp_path):
    (tmp_path / "test_two.py").write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-m", "pytest", "-p", "costs", "--costs", "costs.jsonl", "test_two.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    compiles, starts = map(json.loads, (tmp_path / "costs.jsonl").read_text().splitlines())
    ((kernel, seconds),) = compiles["kernels"]
    assert (kernel, compiles["processes"], starts["kernels"]) == ("test_two.doubled", 0, [])
    assert seconds > 0
    assert compiles["seconds"] > 0
    assert 0 < starts["processes"] <= starts["seconds"]
    assert re.search(r"^ +\d+\.\d\d +0\.00 +\d+\.\d\d +1  test_two\.py::test_that_compiles$", done.stdout, re.M)
