# Every target sets up what it needs in .venv; nothing has to be installed by hand.
SHELL := /bin/bash
BIN := .venv/bin
TESTS ?= $(wildcard tests/unit tests/golden tests/conformance tests/scenarios tests/host)

# A machine that forbids bytecode pays for compiling at every start; ours is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up test e2e lint bench docs pyz golden setup clean help

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@scripts/setup
	@$(BIN)/python -m compileall -q src

up: setup ## the main job: until the local cloud exists, complete examples/minimal.yaml
	@echo "make up: the local cloud is not built yet; this completes examples/minimal.yaml instead" >&2
	@$(BIN)/protokube complete examples/minimal.yaml

test: setup lint ## lint, types, layers, and all tests but e2e
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q -n auto --dist loadfile $(TESTS)
	@$(BIN)/coverage combine -q && $(BIN)/coverage report

e2e: setup ## real Kubernetes (none yet)
	@if ls tests/e2e/test_*.py >/dev/null 2>&1; then $(BIN)/pytest -q tests/e2e; \
	else echo "make e2e: no test needs a real Kubernetes yet"; fi

lint: setup ## ruff, mypy strict, import layers
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }

golden: setup ## write the golden files anew; look at the diff before you commit it
	@PROTOKUBE_REFRESH_GOLDEN=1 $(BIN)/pytest -q tests/golden

bench: setup ## measurements, as ratios in one run on one machine
	@$(BIN)/python bench/run.py

docs: setup ## write the generated pages under docs/ anew
	@$(BIN)/python scripts/docs.py

pyz: setup ## the single-file build: dist/protokube.pyz
	@$(BIN)/python scripts/pyz.py

clean: ## remove everything the targets made
	@rm -rf .venv dist build .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
