# The daily commands.  `make` lists them.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: help setup test exhaustive lint format tree types layers golden bench paper paper-000 paper-001 paper-002 paper-003 paper-004 pairs misra sizes figures choosing demo clean

help:
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

.venv/bin/pytest: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[test]'
	touch $@

setup: .venv/bin/pytest ## virtual environment with everything the tests need

test: setup ## what CI runs, a few minutes
	$(BIN)/pytest -n 2

exhaustive: setup ## the full product of configurations and every float32 value, about an hour
	$(BIN)/pytest -n 2 --exhaustive

lint: setup ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## rewrite to the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# what is installed, as one tree
tree:
	rm -rf build/tree && mkdir -p build/tree/pykernel
	ln -s $(CURDIR)/pykernel/* build/tree/pykernel/
	ln -s $(CURDIR)/gen build/tree/pykernel/gen
	ln -s $(CURDIR)/runtime_c build/tree/pykernel/runtime_c
	ln -s $(CURDIR)/targets build/tree/pykernel/targets

types: setup tree ## static types, of everything but the dialect's modules
	MYPYPATH=build/tree $(BIN)/mypy -p pykernel

layers: setup tree ## which room imports which
	cd build/tree && $(CURDIR)/$(BIN)/lint-imports --no-cache --config $(CURDIR)/pyproject.toml

golden: setup ## generate runtime_c/golden anew; then read the diff
	$(BIN)/pytest -q tests/gen/test_golden.py --update-golden

bench: setup ## the tables of docs/benchmarks.md
	$(BIN)/python -m benchmarks.host.host_speed
	$(BIN)/python -m benchmarks.host.demo_table
	$(BIN)/python -m benchmarks.host.update_cost
	$(BIN)/python -m benchmarks.host.accuracy_table
	$(BIN)/python -m benchmarks.device.preset_instructions
	$(BIN)/python -m benchmarks.host.loo_speed
	$(BIN)/python -m benchmarks.host.loo_digits
	$(BIN)/python -m benchmarks.host.grid_search
	$(BIN)/python -m benchmarks.device.imported_instructions
	$(BIN)/python -m benchmarks.device.training_limits
	$(BIN)/python -m benchmarks.device.training_cost
	$(BIN)/python -m benchmarks.host.basis_table
	$(BIN)/python -m benchmarks.host.subspace_baselines
	$(BIN)/python -m benchmarks.device.subspace_cost
	$(BIN)/python -m benchmarks.host.subspace_drift
	$(BIN)/python -m benchmarks.host.subspace_summary

paper: paper-000 paper-001 paper-002 paper-003 paper-004 ## all five papers

paper-000: setup ## figures and tables of docs/paper-000.md, ten to thirty minutes
	$(BIN)/python -m benchmarks.papers.paper_000

paper-001: setup ## figures and tables of docs/paper-001.md, about ten minutes
	$(BIN)/python -m benchmarks.papers.paper_001

paper-002: setup ## figures and tables of docs/paper-002.md, ten to thirty minutes
	$(BIN)/python -m benchmarks.papers.paper_002

paper-003: setup ## figures and tables of docs/paper-003.md, about half an hour
	$(BIN)/python -m benchmarks.papers.paper_003

paper-004: setup ## figures and tables of docs/paper-004.md, ten to thirty minutes
	$(BIN)/python -m benchmarks.papers.paper_004

pairs: setup ## docs/data/pairs.csv: which metric and projection go together
	$(BIN)/python -m benchmarks.host.pairs

misra: setup ## cppcheck's MISRA findings, against docs/misra.md
	$(BIN)/python -m benchmarks.device.misra

sizes: setup ## bytes of the golden models, and how they changed
	$(BIN)/python -m benchmarks.device.size_report

figures: setup ## the demo in the README
	$(BIN)/python -m benchmarks.host.readme_demo

choosing: setup ## figures and outputs of docs/choosing.md and docs/model-selection.md, some minutes
	$(BIN)/python -m benchmarks.host.choosing_figure
	$(BIN)/python -m benchmarks.host.model_selection

demo: setup ## pykernel demo
	$(BIN)/pykernel demo

clean: ## remove what was built
	rm -rf .venv build dist *.egg-info pykernel-demo
