# The project's commands. They need python3 (3.11 or newer), pip and make, and install into .venv here.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
VENV := .venv
CONSTRAINTS := tests/constraints.txt
PY := $(VENV)/bin/python

# Tests on real data skip themselves where this folder does not exist.
ifneq ($(wildcard ../shared/data),)
export MVCCA_DATA ?= $(abspath ../shared/data)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-long test-all test-browser test-core test-interop test-oldest test-newest mutants lint format docs bench bench-peers bench-all clean

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/.installed-plot ## retrieve across views on real data, and write mvcca-demo.html
	$(VENV)/bin/mvcca demo

# One BLAS thread per test process: two that spin against each other are slower than one.
test test-long test-all: export OMP_NUM_THREADS = 1
test test-long test-all: export OPENBLAS_NUM_THREADS = 1
test: $(VENV)/.installed-test ## run the tests but the slow ones (some of them: make test ARGS="-k ranks")
	$(PY) -m pytest -n auto --maxprocesses 4 -m "not slow" $(ARGS)

test-long: $(VENV)/.installed-test ## run what CI leaves out: all random problems, and every benchmark once
	$(PY) -m pytest -n auto --maxprocesses 4 -m long $(ARGS)

test-all: $(VENV)/.installed-test ## run all tests, also the slow ones (only these: make test ARGS="-m slow")
	$(PY) -m pytest -n auto --maxprocesses 4 $(ARGS)

test-browser: export MVCCA_SCREENSHOTS = $(abspath docs/_build/screenshots)
test-browser: $(VENV)/.installed-test,browser ## look at reports and, after make docs, the site in Chromium
	@command -v chromium chromium-browser chrome >/dev/null || \
	    echo "No Chromium on PATH, so the tests skip themselves: apt install chromium"
	@mkdir -p $(MVCCA_SCREENSHOTS)
	$(PY) -m pytest -m browser tests/test_browser.py $(ARGS)
	@echo "Screenshots of all reports are in $(MVCCA_SCREENSHOTS)"

# What may differ between versions of the dependencies, without the extras.
CORE := archive config frozen_models index kernel labels linear measures persistence public_names ranking \
    similarity sources statistics supervised_baselines threads views

test-interop: export OMP_NUM_THREADS = 1
test-interop: export OPENBLAS_NUM_THREADS = 1
test-interop: $(VENV)/.installed-test-interop ## run the tests with vector stores, ONNX, AnnData, evaluation tools
	$(PY) -m pytest tests/test_interop.py tests/test_stores.py tests/test_runs.py $(ARGS)

test-core: export OMP_NUM_THREADS = 1
test-core: export OPENBLAS_NUM_THREADS = 1
test-core: $(VENV)/.installed-test-core ## run the core tests (another Python: VENV=.newest PYTHON=python3.13)
	$(PY) -m pytest -n auto --maxprocesses 4 $(CORE:%=tests/test_%.py) $(ARGS)

test-oldest: ## run the core tests on the lowest versions of the dependencies
	$(MAKE) test-core VENV=.oldest CONSTRAINTS=tests/constraints-oldest.txt

# A shim of pyenv may be on PATH for a Python that only pyenv can name.
WHERE := import sys; print(sys.executable)
NEWEST = $(firstword $(foreach minor,16 15 14 13,$(shell \
    python3.$(minor) -c '$(WHERE)' 2>/dev/null || \
    "$$(pyenv prefix 3.$(minor) 2>/dev/null)/bin/python3.$(minor)" -c '$(WHERE)' 2>/dev/null)))

test-newest: ## run the core tests on the newest Python here, if that is 3.13 or later
	@newest="$(NEWEST)"; if [ -n "$$newest" ]; then \
	    $(MAKE) test-core VENV=.newest PYTHON="$$newest"; \
	else echo "Skipped: python3.13 or newer is not on PATH and not in pyenv."; fi

mutants: $(VENV)/.installed-test ## change lines at random, and name those that no test notices (an hour)
	$(PY) tests/mutants.py $(ARGS)

lint: $(VENV)/.installed-lint ## check style, format and types
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

format: $(VENV)/.installed-lint ## rewrite the files in the project's format
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

docs: $(VENV)/.installed-docs ## build the documentation into docs/_build/html; a warning is an error
	rm -rf docs/generated
	MPLBACKEND=Agg $(PY) -m sphinx -b html -W --keep-going docs docs/_build/html

bench: $(VENV)/.installed-test ## time and memory beside floors and peers (make bench ARGS="--tasks a")
	@$(PY) -m benchmarks.peers $(ARGS)

bench-peers: $(VENV)/.installed-test ## install the peers that make bench compares with, in .bench
	@$(PY) -m benchmarks.peers --install

bench-all: $(VENV)/.installed-test ## run every other benchmark, but for the tables of the papers
	@for script in $$(grep -l __main__ benchmarks/alignment/*.py benchmarks/defaults/*.py benchmarks/scale/*.py); do \
	    name=$$(echo $${script%.py} | tr / .); echo "== $$name"; $(PY) -m $$name || exit; done

clean: ## remove what these commands wrote, except the environment
	rm -rf dist docs/_build docs/gallery docs/generated docs/sg_execution_times.rst
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache mvcca-demo.html
	find mvcca tests benchmarks docs -name __pycache__ -type d -exec rm -rf {} +

# One stamp per extra: a second call installs nothing, an edited requirement installs again.
$(VENV)/.installed-%: pyproject.toml $(CONSTRAINTS) | $(PY)
	@echo "Installing mvcca[$*] into $(VENV) (about a minute the first time)"
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip >/dev/null
	@$(PY) -m pip install --quiet --disable-pip-version-check \
	    --constraint $(CONSTRAINTS) --editable ".[$*]"
	@touch $@

# `python3 -m venv` fails on a Debian without python3-venv; there virtualenv, in .tools, does the same.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "mvcca needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	         "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
	    echo "No working venv module in $(PYTHON): using virtualenv" && \
	    $(PYTHON) -m pip install --quiet --upgrade --target .tools virtualenv && \
	    PYTHONPATH=.tools $(PYTHON) -m virtualenv --quiet --clear $(VENV); }
