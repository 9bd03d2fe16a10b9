# The daily commands.  `make` lists them.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: help setup test nightly toolchains lint format types layers golden stale remeasure misra demo site clean

help:
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

.venv/bin/pytest: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[test]'
	touch $@

setup: .venv/bin/pytest ## virtual environment with everything the tests need

test: setup ## what CI runs, about ten minutes on two cores
	$(BIN)/pytest -n 2

nightly: setup toolchains ## a third of the full product of configurations, others each night, THIRD=all: all of it, in hours; goes on where it was interrupted
	$(BIN)/doit --continue -n 2 -P thread nightly; code=$$?; $(BIN)/python -m tests.support.tools build/nightly/$$(ls -t build/nightly | head -1); exit $$code

toolchains: ## what Debian has of compilers, emulators and provers for the tests; without root, or elsewhere, the run tells what was missing
	.ci/toolchains || echo "not installed: the tests that need them are skipped"

lint: setup ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## rewrite to the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup ## static types, of everything but the dialect's modules
	$(BIN)/mypy -p pykernel

layers: setup ## which room imports which
	$(BIN)/lint-imports --no-cache

golden: setup ## write anew what the tree is compared with: golden C, reference pages, the corpus of bits, promises; then read the diff
	$(BIN)/pytest -q tests/gen/test_golden.py tests/spec/test_schema.py tests/cli/test_cli.py tests/test_promises.py tests/host/test_identity.py --update-golden

.PHONY: release-check licences
release-check: setup ## wheel and sdist: built, looked into, installed elsewhere and tried there; PYTHONS="python3.12 python3.13"
	$(BIN)/python -m tests.release_check --python $(or $(PYTHONS),$(PYTHON))

licences: setup ## the table of docs/licences.md
	$(BIN)/python -m benchmarks.licences

stale: setup ## which results in docs/data are stale, and why
	$(BIN)/python -m benchmarks

build/held-back: benchmarks/data.txt
	$(BIN)/pip install -q --upgrade --no-deps --target $@ -r $<
	touch $@

build/signals: examples/signals/data.py
	$(BIN)/python -m examples.signals.data
	touch $@

remeasure: setup build/held-back build/signals ## measure again what is stale, an hour on two idle cores; ALL=1: everything
	$(BIN)/pip install -q -r benchmarks/peers.txt
	$(BIN)/doit --continue $(if $(ALL),-a) -n 2 -P thread remeasure

misra: setup ## cppcheck's MISRA findings, against docs/misra.md
	$(BIN)/python -m benchmarks.device.misra

demo: setup ## pykernel demo
	$(BIN)/pykernel demo

site: setup ## the documentation as a site, in build/site; fails at a link that leads nowhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -f website/mkdocs.yml

clean: ## remove what was built
	rm -rf .venv build dist *.egg-info pykernel-demo
