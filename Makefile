# Every target does its own set-up: python3 (>= 3.11) and make are all that must be there.
PYTHON ?= python3
BIN := .venv/bin
VENV := .venv/.demo
READY := .venv/.ready
QUICK_TO_COMPILE := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true \
	--xla_cpu_use_fusion_emitters=false

.DEFAULT_GOAL := help
.PHONY: help setup demo test slow fuzz oracles oldest newest install lint format docs screenshot bench clean

help:  ## Say what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## */  make \1\t/' | expand -t 16

setup: $(READY)  ## Create .venv and install the package with its tools

$(VENV): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; say which: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	@# Older pips know no dependency groups.
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	@touch $@

$(READY): $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	@touch $@

demo: $(VENV)  ## Fit HMOCGP to a bike share that runs out of bikes; print a table, draw a figure
	$(BIN)/censored-gp demo

test: $(READY) lint docs  ## All checks: lint, types, tests, docs
	$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

slow: $(READY)  ## The tests that take long
	$(BIN)/python -m pytest -n 2 --dist loadscope -m slow

fuzz: $(READY)  ## Try 10,000 random tables, bounds, kernels, queries, files and command lines
	$(BIN)/python -m pytest tests/fuzz --cases 10000 --hypothesis-show-statistics

oracles: $(READY) .venv-gpflow/.ready  ## Compare with scipy, mpmath, lifelines, statsmodels, scikit-learn, GPflow, R
	$(BIN)/python -m pip install --quiet --group oracles
	PYTHONPATH=tests:. CENSORED_GP_GPFLOW=.venv-gpflow/bin/python $(BIN)/python -m oracles

# GPflow does not go along with everything else.
.venv-gpflow/.ready: pyproject.toml
	$(PYTHON) -m venv --clear .venv-gpflow
	.venv-gpflow/bin/python -m pip install --quiet "pip>=25.1"
	.venv-gpflow/bin/python -m pip install --quiet --group gpflow
	@touch $@

# What must pass with the oldest allowed and the newest releases of all that we depend on.
SUBSET ?= tests/contracts tests/data tests/estimator tests/cli
oldest: .venv-oldest/.ready  ## Tests with the oldest allowed release of every dependency
	.venv-oldest/bin/python -W ignore -m pytest -W ignore $(SUBSET)

newest: .venv-newest/.ready  ## Tests with the newest release of every dependency
	.venv-newest/bin/python -m pytest $(SUBSET)

.venv-%/.ready: pyproject.toml
	$(PYTHON) -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install --quiet "pip>=25.1"
	$(PYTHON) tests/support/oldest.py $* > .venv-$*/constraints.txt
	.venv-$*/bin/python -m pip install --quiet --upgrade --constraint .venv-$*/constraints.txt \
		--editable ".[all]" --group test
	@touch $@

install: $(READY)  ## Install the wheel and the sdist into clean environments, and run the demo
	rm -rf dist && $(BIN)/python -m pip install --quiet build && $(BIN)/python -m build --outdir dist .
	@for file in dist/*.whl dist/*.tar.gz; do echo "== $$file"; rm -rf .venv-install; \
		$(PYTHON) -m venv .venv-install \
		&& .venv-install/bin/python -m pip install --quiet "$$file[plot]" \
		&& (cd .venv-install && bin/censored-gp demo --days 15 --figure demo.png && test -s demo.png) \
		|| exit 1; done

lint: $(READY)  ## Style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(READY)  ## Mend style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(READY)  ## Build the documentation into site/
	@# The tutorials are run: what compiles quickly is ready sooner than what runs quickly.
	NO_MKDOCS_2_WARNING=1 XLA_FLAGS="$(QUICK_TO_COMPILE)" $(BIN)/mkdocs build --strict --quiet

screenshot: $(READY)  ## Make the picture of the report in docs/images (needs Chromium)
	$(BIN)/python docs/screenshot.py

bench: $(READY)  ## Run every benchmark
	@for name in speed answers scale profile rivals lost_demand real_data trust detection_limits calibration; do echo "== $$name"; $(BIN)/python -m benchmarks.$$name || exit 1; done

clean:  ## Remove what make has made
	rm -rf .venv .venv-* dist site out .pytest_cache .ruff_cache
