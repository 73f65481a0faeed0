# make demo: prune a forest on data that ships with scikit-learn.  make test: every check CI runs.
# CONTRIBUTING.md says what each command covers and how long it takes.
# All need only Python 3.11+ and make: they create .venv and install into it on the first call.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := pip install --quiet --disable-pip-version-check
PIP := $(BIN)/$(INSTALL)
PIP_MIN := .venv-min/bin/$(INSTALL) --constraint tests/oldest.txt
# The newest Python that is installed, or else $(PYTHON).
NEWEST ?= $(lastword $(PYTHON) $(sort $(wildcard /usr/bin/python3.1[2-9] $(HOME)/.pyenv/versions/3.1[2-9].*/bin/python)))
PYTEST := -m pytest -n auto --dist loadgroup
# Every process that tests reads all test modules; kept as bytecode, they are parsed once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test test-all test-bounds test-min test-newest test-fuzz suite warm check oldest mutants docs tables pictures bench harden clean

demo: .venv/.core
	$(BIN)/secateur demo --out demo --force

# For the loop of changing code: no Spark, no browser, no whole programs, no contracts over all models.
quick: .venv/.dev
	$(BIN)/python $(PYTEST) -m "not (spark or browser or end_to_end or contracts)"

# What CI runs. The three parts do not wait for each other.
test: .venv/.dev
	$(MAKE) --no-print-directory -j 3 check oldest suite

# Everything, for a nightly run: all models in contracts, nightly tests, kernels that check every index, oldest and newest
# versions, and more than an hour of fuzzing.
test-all: .venv/.dev .venv/.fuzz
	$(MAKE) --no-print-directory -j 2 check warm
	$(BIN)/python $(PYTEST) --full
	$(MAKE) --no-print-directory test-bounds test-min test-newest test-fuzz

suite: warm
	$(BIN)/python $(PYTEST)

# Compiles the kernels in one process, so that two that test at once never compile the same one.
warm: .venv/.dev
	$(BIN)/python -m tests.warm_up

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The oldest versions that pyproject.toml allows can be installed together, and the package can be imported with them.
oldest: .venv-min/.core

# The suite with kernels that look at every index, compiled into a cache of their own; they are slower.
test-bounds: .venv/.dev
	$(BIN)/python -m tests.hardening bounds

# The suite with the oldest supported version of every dependency.
test-min: .venv-min/.dev
	.venv-min/bin/python -m tests.warm_up
	.venv-min/bin/python $(PYTEST)

# The suite with the newest Python that is installed, and the newest version of every dependency.
test-newest: .venv-newest/.dev
	.venv-newest/bin/python -m tests.warm_up
	.venv-newest/bin/python $(PYTEST)

# Fuzzes every reader of model files for ten minutes, guided by the branches it reaches.
test-fuzz: .venv/.fuzz
	$(BIN)/python -m tests.hardening fuzzed_readers

# Applies small defects to a copy, one after the other, and says which the tests catch.
mutants: .venv/.dev
	$(BIN)/python -m tests.mutants

docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Writes the tables of solvers, losses, costs and libraries into README.md and docs/methods/index.md.
tables: .venv/.dev
	$(BIN)/python docs/site/tables.py

pictures: .venv/.dev
	$(BIN)/python docs/site/pictures.py
	$(BIN)/python docs/site/screens.py

# All tables, or some: make bench TABLES="max_heap budgets". `python -m benchmarks --list` says how long each took.
bench: .venv/.dev
	$(BIN)/python -m benchmarks $(TABLES)

harden: .venv/.dev
	$(BIN)/python -m tests.hardening

.venv/.core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --editable ".[skops]"
	touch $@

.venv/.dev: .venv/.core
	$(PIP) --editable ".[dev]"
	touch $@

.venv/.fuzz: .venv/.dev
	$(PIP) "atheris>=3"
	touch $@

.venv-newest/.dev: pyproject.toml
	$(NEWEST) -m venv --clear .venv-newest
	.venv-newest/bin/$(INSTALL) --upgrade --editable ".[dev]"
	touch $@

.venv-min/.core: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv --clear .venv-min
	$(PIP_MIN) --editable .
	.venv-min/bin/python -c "import secateur, secateur.cli, secateur.kernels"
	$(PIP_MIN) --dry-run ".[dev]"
	touch $@

.venv-min/.dev: .venv-min/.core
	$(PIP_MIN) --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv .venv-min .venv-newest .numba-bounds demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
