# `make demo` and `make test` work on a machine with git, make and python3 with pip; they set up what they need.

SHELL := /bin/sh
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(UV) run --quiet --frozen --no-sync

.PHONY: demo test check format bench docs clean

demo: .venv/ready
	$(RUN) evalstone demo

test: .venv/all
	$(RUN) pytest

check: .venv/all
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) pyright
	$(RUN) lint-imports
	$(RUN) python tools/make_docs.py --check
	$(RUN) pytest

format: .venv/all
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

bench: .venv/ready
	$(RUN) python bench/speed.py
	$(RUN) python bench/engine.py
	$(RUN) python bench/calls.py
	$(RUN) python bench/code_scorers.py

docs: .venv/ready
	$(RUN) python tools/make_docs.py

clean:
	rm -rf .venv .tools .pytest_cache .ruff_cache .hypothesis .import_linter_cache results

.tools/bin/uv:
	python3 -m pip install --quiet --disable-pip-version-check --target .tools uv

.venv/ready: pyproject.toml uv.lock | $(filter .tools/%,$(UV))
	$(UV) sync --quiet --frozen
	@touch $@

.venv/all: pyproject.toml uv.lock | $(filter .tools/%,$(UV))
	$(UV) sync --quiet --frozen --all-extras
	@touch $@ .venv/ready
