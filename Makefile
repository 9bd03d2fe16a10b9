# The daily commands.  `make` lists them.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: help setup test exhaustive lint format types golden bench paper paper-000 paper-001 paper-002 paper-003 paper-004 pairs misra sizes figures choosing demo clean

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

types: setup ## static types, of everything but the dialect's modules
	rm -rf build/types && mkdir -p build/types/pykernel
	ln -s $(CURDIR)/pykernel/* build/types/pykernel/
	ln -s $(CURDIR)/gen build/types/pykernel/gen
	ln -s $(CURDIR)/runtime_c build/types/pykernel/runtime_c
	ln -s $(CURDIR)/targets build/types/pykernel/targets
	MYPYPATH=build/types $(BIN)/mypy -p pykernel

golden: setup ## generate runtime_c/golden anew; then read the diff
	$(BIN)/pytest -q tests/test_golden.py --update-golden

bench: setup ## the tables of docs/benchmarks.md
	$(BIN)/python benchmarks/host_speed.py
	$(BIN)/python benchmarks/demo_table.py
	$(BIN)/python benchmarks/update_cost.py
	$(BIN)/python benchmarks/accuracy_table.py
	$(BIN)/python benchmarks/preset_instructions.py
	$(BIN)/python benchmarks/loo_speed.py
	$(BIN)/python benchmarks/loo_digits.py
	$(BIN)/python benchmarks/grid_search.py
	$(BIN)/python benchmarks/imported_instructions.py
	$(BIN)/python benchmarks/training_limits.py
	$(BIN)/python benchmarks/training_cost.py
	$(BIN)/python benchmarks/basis_table.py
	$(BIN)/python benchmarks/subspace_peers.py
	$(BIN)/python benchmarks/subspace_cost.py
	$(BIN)/python benchmarks/subspace_drift.py
	$(BIN)/python benchmarks/subspace_summary.py

paper: paper-000 paper-001 paper-002 paper-003 paper-004 ## all five papers

paper-000: setup ## figures and tables of docs/paper-000.md, ten to thirty minutes
	$(BIN)/python benchmarks/paper_000.py

paper-001: setup ## figures and tables of docs/paper-001.md, about ten minutes
	$(BIN)/python benchmarks/paper_001.py

paper-002: setup ## figures and tables of docs/paper-002.md, ten to thirty minutes
	$(BIN)/python benchmarks/paper_002.py

paper-003: setup ## figures and tables of docs/paper-003.md, about half an hour
	$(BIN)/python benchmarks/paper_003.py

paper-004: setup ## figures and tables of docs/paper-004.md, ten to thirty minutes
	$(BIN)/python benchmarks/paper_004.py

pairs: setup ## docs/pairs.csv: which metric and projection go together
	$(BIN)/python benchmarks/pairs.py

misra: setup ## cppcheck's MISRA findings, against docs/misra.md
	$(BIN)/python benchmarks/misra.py

sizes: setup ## bytes of the golden models, and how they changed
	$(BIN)/python benchmarks/size_report.py

figures: setup ## the demo in the README
	$(BIN)/python benchmarks/readme_demo.py

choosing: setup ## figures and outputs of docs/choosing.md and docs/model-selection.md, some minutes
	$(BIN)/python benchmarks/choosing_figure.py
	$(BIN)/python benchmarks/model_selection.py

demo: setup ## pykernel demo
	$(BIN)/pykernel demo

clean: ## remove what was built
	rm -rf .venv build dist *.egg-info pykernel-demo
