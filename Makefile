# make demo: prune a forest on data that ships with scikit-learn.  make test: every check CI runs.
# make harden: what was tried to break it, at full scale; writes docs/reliability.md.
# All need only Python 3.11+ and make: they create .venv and install into it on the first call.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: demo test check docs pictures bench harden clean

demo: .venv/.core
	$(BIN)/secateur demo --out demo --force

test: check
	$(BIN)/python -m pytest -n auto --dist loadgroup

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

clean:
	rm -rf .venv demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
