# Every target does its own set-up: all it needs is make and Python 3.11 or newer.
#
#   make demo ARGS="--minutes 1"     make test MARKERS= JOBS=0     make demo PYTHON=/usr/bin/python3.12

VENV    ?= .venv
ARGS    ?=
JOBS    ?= logical
MARKERS ?= not slow

BIN := $(VENV)/bin

# 3.11 first: constraints.txt is tested with it.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

.DEFAULT_GOAL := help
.PHONY: help install demo test check format constraints clean

help:
	@echo 'make install      newsbeat into .venv, and nothing else'
	@echo 'make demo         the whole system on a replayed web, offline, in about three minutes'
	@echo 'make test         tests and doctests (MARKERS= runs the slow ones too)'
	@echo 'make check        format, lint, types and import contracts'
	@echo 'make format       put the code into the format that check wants'
	@echo 'make constraints  newest versions of everything into constraints.txt'
	@echo 'make clean        remove the environment, caches and the demo; collected data stays'

$(VENV)/.installed: pyproject.toml constraints.txt .ci/install.py
	@if [ -z "$(PYTHON)" ]; then \
		echo 'newsbeat needs Python 3.11 or newer and found none.' >&2; \
		echo 'Install it, or name one: make demo PYTHON=/path/to/python3' >&2; exit 1; fi
	@"$(PYTHON)" .ci/install.py "$(VENV)"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@"$(PYTHON)" .ci/install.py "$(VENV)" --dev
	@touch $@

install: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/newsbeat demo $(ARGS)

test: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "$(MARKERS)" $(ARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

constraints: $(VENV)/.installed-dev
	.ci/constraints "$(BIN)"

clean:
	rm -rf $(VENV) build dist demo *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
