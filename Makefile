# Three commands for a machine that has python3 (3.11 or newer, with venv) and make:
#   make reproduce   set up .venv, install Backcast, run the main job
#   make lab         set up .venv, install with the lab extra, open the lab in the browser
#   make test        set up .venv, install with the development extra, run lint, types and tests
# Beside them: make quick (a part of the tests, interpreted, in a minute), make slow (what takes long),
# make page, minimal, pythons, torture, mutants (does a test fail if a place of the code is changed?), costs (of tests).

PYTHON ?= python3
BIN := .venv/bin

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv takes a third of pip's time. Where it finds no packages, as where an index is configured for pip alone, pip installs them.
INSTALL = install() { $(BIN)/uv pip install --quiet "$$@" 2>/dev/null || $(PIP) "$$@"; }; install
# One worker more than cores: tests wait for browsers and other processes.
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PAGE := tests/page

# Bytecode is kept: of tests for the second run of them, of Backcast for the processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce lab test lint types check quick slow page docs package minimal pythons lock torture mutants costs tutorials figures findings textbook clean

reproduce: .venv/installed
	$(BIN)/backcast reproduce --out results

lab: .venv/with-lab
	$(BIN)/backcast lab

test: .venv/developing lint types check

lint: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/developing
	$(BIN)/mypy

# First what needs no compiler, then the rest. There each file has one worker, and files come in their order, which
# begins with agents: workers that would compile the same parts at the same time do it twice.
check: .venv/developing
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n auto --dist worksteal -m 'interpreted and not slow'
	$(PYTEST) -m 'not interpreted and not slow'

# For the inner loop: what needs no compiler, in about a minute.
quick: .venv/developing
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n auto --quiet -m 'not slow' @.ci/interpreted.txt

slow: .venv/developing
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n auto --dist worksteal -m 'interpreted and slow'
	$(PYTEST) -m 'not interpreted and slow'

# The lab's page: ESLint and the tests of its modules that need no browser; nothing where there is no Node.js.
page:
	@if command -v npm >/dev/null; then cd $(PAGE) && npm ci --silent && npm run --silent lint && npm test --silent; \
	else echo "There is no Node.js here: the page's JavaScript is not checked."; fi

# The wheel and the source archive in dist, checked as a package index would.
package: .venv/bin/python
	$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

# Quick tests of the built wheel with the lowest versions that pyproject.toml allows.
minimal: .venv/bin/uv
	.ci/installed lowest

# The same with every supported Python that is here or can be installed.
pythons: .venv/bin/uv
	.ci/installed 3.11 3.12 3.13 3.14

# Renews the versions that developers and CI install.
lock: .venv/bin/uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --extra docs --no-emit-package backcast \
	  --custom-compile-command 'make lock' --output-file requirements-dev.lock pyproject.toml

torture: .venv/developing
	$(BIN)/pytest torture

# make mutants ARGUMENTS='--seed 1 --module models/rows': others than the usual 400.
mutants: .venv/developing
	PYTHONPATH=tests $(BIN)/python -m mutants $(ARGUMENTS)

# The documentation site in build/docs, to be read from the file system; warnings and broken links are errors.
docs: .venv/documenting
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# What the tutorials print, their pictures and notebooks; look at them before you commit.
TUTORIALS := $(filter-out docs/tutorials/index.md,$(wildcard docs/tutorials/*.md))
tutorials: .venv/developing
	NUMBA_DISABLE_JIT=1 $(BIN)/python docs/notebooks.py write $(TUTORIALS)
	$(BIN)/python docs/notebooks.py convert $(TUTORIALS)

# make costs ARGUMENTS='tests/models -m "not slow"': processor seconds of each test, with a cold cache of kernels.
costs: .venv/developing
	rm -rf build/costs && mkdir -p build/costs
	PYTHONPATH=$(CURDIR)/tests BACKCAST_CACHE_DIR=$(CURDIR)/build/costs $(BIN)/pytest --quiet -p costs --costs build/costs/tests.jsonl $(ARGUMENTS)

figures: .venv/developing
	$(BIN)/python docs/figures/reversal.py
	$(BIN)/python docs/figures/lab.py
	$(BIN)/python docs/figures/reproduction.py results

findings: .venv/developing
	$(BIN)/backcast reproduce estimation horizons neighbours experience off-policy linear planner-aware abstract --seeds 100 --out findings
	$(BIN)/python docs/figures/findings.py findings

textbook: .venv/developing
	$(BIN)/backcast reproduce textbook --out textbook
	$(BIN)/python docs/figures/textbook.py textbook

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Backcast needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/uv pyproject.toml
	$(INSTALL) --editable .
	@touch $@

.venv/with-lab: .venv/bin/uv pyproject.toml
	$(INSTALL) --editable '.[lab]'
	@touch $@ .venv/installed

.venv/developing: .venv/bin/uv pyproject.toml requirements-dev.lock
	$(INSTALL) --constraint requirements-dev.lock --editable '.[dev]'
	@touch $@ .venv/installed .venv/with-lab

.venv/documenting: .venv/developing
	$(INSTALL) --constraint requirements-dev.lock --editable '.[dev,docs]'
	@touch $@ .venv/developing .venv/installed .venv/with-lab

.venv/bin/uv: .venv/bin/python
	$(PIP) uv
	@touch $@

clean:
	rm -rf .venv build dist $(PAGE)/node_modules
