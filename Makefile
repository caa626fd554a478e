# Three commands for a machine that has python3 (3.11 or newer, with venv) and make:
#   make reproduce   set up .venv, install Backcast, run the main job
#   make lab         set up .venv, install with the lab extra, open the lab in the browser
#   make test        set up .venv, install with the development extra, run lint, types and tests

PYTHON ?= python3
BIN := .venv/bin

.PHONY: reproduce lab test lint types check torture figures findings clean

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

check: .venv/developing
	$(BIN)/pytest -n auto

torture: .venv/developing
	$(BIN)/pytest torture

figures: .venv/developing
	$(BIN)/python docs/figures/reversal.py
	$(BIN)/python docs/figures/lab.py
	$(BIN)/python docs/figures/reproduction.py results

findings: .venv/developing
	$(BIN)/backcast reproduce estimation horizons neighbours experience off-policy linear planner-aware abstract --seeds 100 --out findings
	$(BIN)/python docs/figures/findings.py findings

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Backcast needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/with-lab: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lab]'
	@touch $@ .venv/installed

.venv/developing: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ .venv/installed .venv/with-lab

clean:
	rm -rf .venv build dist
