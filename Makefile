# Two commands are enough: `make demo` and `make test`. `make ci` is exactly what CI runs.
# Every step is listed in tools/steps.py; `make help` prints them.

PYTHON ?= python3
STEPS = $(PYTHON) tools/steps.py

.DEFAULT_GOAL := help
.PHONY: help demo test ci bench faults pictures lint wheel lock clean

help: ## What each command does
	@$(STEPS) help

demo: ## Create .venv, build a release wheel, search the standard library's docstrings encrypted
	@$(STEPS) demo

test: ## The same set-up, then every test, lint, type check, example and README snippet
	@$(STEPS) test

ci: test ## Exactly CI

bench: ## Remake benches/results/* and the documents' tables on this machine
	@$(STEPS) bench

faults: ## Kill, damage, fill and wear out a server, for an hour; remake the list of what it took
	@$(STEPS) faults

pictures: ## Draw benches/results/*.png, and write *.csv, from the stored records; git ignores both
	@$(STEPS) pictures

lint: ## Formatting, clippy, ruff and mypy only
	@$(STEPS) lint

wheel: ## Build the release wheel and install it in .venv
	@$(STEPS) wheel

lock: ## Resolve requirements-dev.txt again from pyproject.toml
	@$(STEPS) lock

clean: ## Remove .venv, target and the demo's folder
	rm -rf .venv target demo-data
