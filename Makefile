# `make demo` and `make test` work on a machine with git, make and python3 with pip; they set up what they need.

SHELL := /bin/sh
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(UV) run --quiet --frozen --no-sync

# What a model of half a megabyte has no use for is not compiled, which would take minutes more.
LLAMA_BUILD := -DLLAVA_BUILD=OFF -DGGML_LLAMAFILE=OFF -DGGML_OPENMP=OFF -DGGML_CPU_REPACK=OFF -DGGML_METAL=OFF \
	-DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1

.PHONY: demo test test-llama check format bench docs train-lexical clean

demo: .venv/ready
	$(RUN) evalstone demo

test: .venv/all
	$(RUN) pytest

# Needs a C++ compiler, for llama.cpp, which lands in .tools and in uv's cache.
test-llama: .venv/all .tools/llama/ready
	EVALSTONE_LLAMA_PYTHON=.tools/llama/bin/python $(RUN) pytest tests/llama

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

# BENCH="--peers-python PATH" measures the libraries that PATH has as well; bench/others.py says how to install them.
bench: .venv/ready
	$(RUN) python bench/speed.py $(BENCH)
	$(RUN) python bench/engine.py
	$(RUN) python bench/calls.py
	$(RUN) python bench/code_scorers.py

docs: .venv/ready
	$(RUN) python tools/make_docs.py

# The labelled data are not in this repository: see docs/lexical-judge.md for their sources.
GROUNDING := ../shared/data/grounding

train-lexical: .venv/ready
	@test -d $(GROUNDING) || { echo "$(GROUNDING) is not there: the lexical judge is trained on labelled data that are" \
		"not in this repository; name their folder: make train-lexical GROUNDING=DIR"; exit 2; }
	OMP_NUM_THREADS=1 $(RUN) python tools/train_lexical.py --data $(GROUNDING)

clean:
	rm -rf .venv .tools .pytest_cache .ruff_cache .hypothesis .import_linter_cache results

.tools/bin/uv:
	python3 -m pip install --quiet --disable-pip-version-check --target .tools uv

# What is there beside stays: extras and development tools that `make test` has put there.
.venv/ready: pyproject.toml uv.lock | $(filter .tools/%,$(UV))
	$(UV) sync --quiet --frozen --no-dev --inexact
	@touch $@

.venv/all: pyproject.toml uv.lock | $(filter .tools/%,$(UV))
	$(UV) sync --quiet --frozen --all-extras
	@touch $@ .venv/ready

.tools/llama/ready: tests/llama/requirements.txt | .venv/all
	@echo "building llama.cpp's server in .tools/llama, once; this takes some minutes"
	$(UV) venv --quiet --allow-existing --python .venv/bin/python .tools/llama
	CMAKE_ARGS="$(LLAMA_BUILD)" $(UV) pip install --quiet --python .tools/llama/bin/python -r $<
	@touch $@
