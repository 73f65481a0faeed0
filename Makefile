# make demo: prune a forest on data that ships with scikit-learn.  make test: every check CI runs.
# make harden: what was tried to break it, at full scale; writes docs/reliability.md.
# All need only Python 3.11+ and make: they create .venv and install into it on the first call.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := pip install --quiet --disable-pip-version-check
PIP := $(BIN)/$(INSTALL)
PIP_MIN := .venv-min/bin/$(INSTALL) --constraint tests/oldest.txt
CORE := tests/kernels tests/path tests/cli/test_prune.py tests/cli/test_terminal.py tests/cli/test_help_and_inspect.py \
	tests/solvers/test_weakest_link.py tests/solvers/test_classical.py tests/solvers/test_linear_program.py tests/test_blas.py \
	tests/io/test_sklearn.py tests/io/test_skops.py \
	tests/io/test_archive.py tests/io/test_saved_models.py tests/test_forest.py tests/test_routing.py tests/test_versions.py

.PHONY: demo test test-bounds test-min test-min-core check docs pictures bench harden clean

demo: .venv/.core
	$(BIN)/secateur demo --out demo --force

test: check
	$(BIN)/python -m pytest -n auto --dist loadgroup

# The suite with kernels that look at every index, compiled into a cache of their own; they are slower.
test-bounds: .venv/.dev
	$(BIN)/python -m tests.hardening bounds

# The suite with the oldest supported version of every dependency; the core is what every user has: no Spark, no site.
test-min: .venv-min/.dev
	.venv-min/bin/python -m pytest -n auto --dist loadgroup

test-min-core: .venv-min/.core
	.venv-min/bin/python -m pytest -n auto --dist loadgroup $(CORE)

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: .venv/.dev
	$(BIN)/python docs/site/pictures.py
	$(BIN)/python docs/site/screens.py

bench: .venv/.dev
	$(BIN)/python -m benchmarks

harden: .venv/.dev
	$(BIN)/python -m tests.hardening

.venv/.core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --editable ".[skops]"
	touch $@

.venv/.dev: .venv/.core
	$(PIP) --editable ".[dev]"
	touch $@

.venv-min/.core: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv --clear .venv-min
	$(PIP_MIN) --editable ".[test]"
	touch $@

.venv-min/.dev: .venv-min/.core
	$(PIP_MIN) --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv .venv-min .numba-bounds demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
