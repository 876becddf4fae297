# Every target sets up what it needs: `up` and `down` a small environment in .run, all others .venv. Nothing has to be
# installed by hand.
SHELL := /bin/bash
BIN := .venv/bin
RUN := .run/bin
TESTS ?= tests/host tests/scenarios tests/conformance tests/process
UNITS ?= tests/unit tests/golden

# A machine that forbids bytecode pays for compiling at every start; ours is compiled once.
unexport PYTHONDONTWRITEBYTECODE

# Hosts, disks and mounts are root's.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
ROOTLESS := error: hosts, disks and mounts need root, and this machine has no sudo: run make as root
NEED_ROOT := $(if $(SUDO),$(if $(shell command -v sudo 2>/dev/null),,echo "$(ROOTLESS)" >&2; exit 4))
UP ?=
SOAK ?=

.PHONY: up down unit units test tests coverage soak e2e conformance lint ruff types layers bench docs pyz deb image golden setup clean help

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@scripts/setup

up: ## the main job: three masters on this machine, etcd on floating disks, names in DNS, and it heals
	@$(NEED_ROOT)
	@scripts/setup run
	@scripts/packages
	@scripts/link
	@$(RUN)/python scripts/made.py note $(UP)
	@$(SUDO) $(RUN)/protokube up $(UP); code=$$?; $(RUN)/python scripts/made.py keep; exit $$code

down: ## take away what `make up` made, and no other cluster
	@$(NEED_ROOT)
	@scripts/setup run
	@$(RUN)/python scripts/made.py down $(SUDO) $(RUN)/protokube

# Two more at a time than there are processors: half of what the host tests do is waiting.
WORKERS ?= $(shell echo $$(($$(nproc) + 2)))

TESTING := -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 20

unit: setup ## the fast loop: unit tests and golden files; no root, no lint
	@$(BIN)/python scripts/shares.py tests/unit tests/golden -- --hypothesis-profile fast

# One room: make test T=agent/volume. Its lint, and its tests of every tier but e2e.
T ?=
ROOM = $(wildcard src/protokube/$(T) src/protokube/$(T).py)
ROOM_TESTS = $(wildcard $(foreach tier,unit process scenarios conformance host,tests/$(tier)/$(T) tests/$(tier)/$(dir $(T))test_$(notdir $(T)).py))

ifeq ($(T),)
# Tests of hosts wait half of their time. Types, layers and unit tests only compute: they fill that time.
test: setup ruff ## lint, types, layers, and all tests but e2e; T=agent/volume: lint and tests of one room
	@scripts/packages
	@$(MAKE) --no-print-directory -j 4 types layers units tests
else
test: setup
	@if [ -z "$(strip $(ROOM_TESTS))" ]; then \
		echo "error: no tests for T=$(T)" >&2; \
		echo "  want: a folder or module of src/protokube that has tests, as in T=agent/volume" >&2; exit 2; fi
	@$(BIN)/ruff check $(ROOM) $(ROOM_TESTS) && $(BIN)/ruff format --check $(ROOM) $(ROOM_TESTS)
	@$(BIN)/mypy $(ROOM) $(ROOM_TESTS)
	@$(BIN)/pytest -q -n $(shell nproc) --dist worksteal $(ROOM_TESTS)
endif

tests: setup
	@$(if $(strip $(TESTS)),$(BIN)/python scripts/second_look.py $(TESTING) $(TESTS))

units: setup
	@$(if $(strip $(UNITS)),nice -n 5 $(BIN)/python scripts/shares.py $(UNITS))

# Beside `test`, since to count lines takes as long again as to run them.
coverage: setup ## the same tests, with the lines and branches that they reach: nine of ten at least
	@scripts/packages
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(TESTING) $(TESTS) $(UNITS)
	@$(BIN)/coverage combine -q && $(BIN)/coverage report

soak: setup ## hours of what must always hold: make soak SOAK="wiped drills --minutes 30"
	@scripts/packages
	@scripts/inotify
	@$(SUDO) $(BIN)/python soak/run.py $(SOAK)

# Clusters are apart from each other, and mostly wait. More than two at once would compete for two processors.
LANES ?= 2

e2e: setup ## what needs a whole machine: a real systemd, the real Kubernetes (built once, if there is none)
	@scripts/packages "wget wget"
	@scripts/inotify
	@scripts/kubernetes
	@$(BIN)/python scripts/second_look.py -q -n $(LANES) --dist loadfile --no-loadscope-reorder --durations 20 \
		$$(scripts/kubernetes --left-out) tests/e2e

# Which tests of the suite, and what happens to the cluster meanwhile; docs/conformance.md.
PART ?=
FOCUS ?=
SKIP ?=
DRILL ?=
CONFORMANCE ?=
SUITE_OPTIONS = $(if $(PART),--part '$(PART)') $(if $(FOCUS),--focus '$(FOCUS)') $(if $(SKIP),--skip '$(SKIP)') \
	$(if $(DRILL),--drill '$(DRILL)') $(CONFORMANCE)

conformance: setup ## the official conformance suite of Kubernetes: PART=api, FOCUS=…, SKIP=…, DRILL=kill-master
	@scripts/packages "wget wget"
	@scripts/inotify
	@scripts/kubernetes
	@$(SUDO) $(BIN)/python soak/conformance/run.py $(SUITE_OPTIONS)

lint: ruff types layers ## ruff, mypy strict, import layers

ruff: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup
	@nice -n 5 $(BIN)/mypy

layers: setup
	@$(BIN)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }

golden: setup ## write the golden files anew; look at the diff before you commit it
	@PROTOKUBE_REFRESH_GOLDEN=1 $(BIN)/pytest -q tests/golden

bench: setup ## measurements, as ratios in one run on one machine
	@$(BIN)/python bench/run.py

docs: setup ## write the generated pages under docs/ anew, and build the site: dist/site/VERSION
	@$(BIN)/python scripts/docs.py
	@scripts/site

# What it is built for: this machine's processor and libc if empty, or e.g. aarch64-musl, or all.
FOR ?=
BUILDING := PYTHONPATH=.run/build $(RUN)/python

pyz: ## the single-file build: dist/protokube.pyz for this kind of machine; FOR=aarch64-musl for another, FOR=all
	@scripts/setup build
	@$(BUILDING) scripts/pyz.py $(if $(FOR),--for $(FOR))

deb: ## a Debian package for this kind of machine: dist/protokube_*.deb
	@scripts/setup build
	@$(BUILDING) scripts/deb.py

image: ## a container image: dist/protokube-image.tar
	@scripts/setup build
	@$(BUILDING) scripts/image.py

clean: ## remove everything the targets made
	@scripts/clean
