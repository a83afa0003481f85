# Two commands are enough: `make demo` and `make test`; `make check` is for between two edits. `make ci` is what
# CI runs on one machine. Every step is listed in tools/steps.py; `make help` prints them.

PYTHON ?= python3
STEPS = $(PYTHON) tools/steps.py

.DEFAULT_GOAL := help
.PHONY: help demo check test release compat compat-chroma ray web site chromium demo-web bench-web nightly mutants console pages ci bench reproduce faults pictures lint wheel wheels lock version clean

help: ## What each command does
	@$(STEPS) help

demo: ## Create .venv, build a wheel quickly, search the standard library's docstrings encrypted
	@$(STEPS) demo

check: ## The quick ones: lints, types, Rust unit tests, the core of the Python tests
	@$(STEPS) check

test: ## The same set-up, then every test, lint, type check, example and README snippet
	@$(STEPS) test

release: ## Build what ships, the release wheel, and run the core of the Python tests on it
	@$(STEPS) release

# A suite too long for `make test` gets a target of its own, and stands here.
compat: ## Run the suites of LangChain, Haystack, LlamaIndex, scikit-learn and Chroma over collections
	@$(STEPS) compat

compat-chroma: ## Run Chroma's own suite against the sidecar, property tests too
	@$(STEPS) compat-chroma

ray: ## Run sealing, scanners and the front on Ray clusters of this machine
	@$(STEPS) ray

web: ## Build and test what runs in a browser: the client, the console, the demo page
	@$(STEPS) web

site: ## The documentation as a site: target/site/public, with what is built of the references and the demo
	@$(STEPS) site

nightly: ## What takes hours: a server that lies 10,000 times, millions of checks, every set at full size
	@$(STEPS) nightly

mutants: ## Take each check of what strangers send out, and see whether a test fails
	@$(STEPS) mutants

chromium: ## Install Chromium for the browser tests of `make web`: Debian, as root
	@$(STEPS) chromium

demo-web: ## Search the standard library's docstrings, encrypted, in a page of your browser
	@$(STEPS) demo-web

bench-web: ## Measure the client in Chromium beside the native module
	@$(STEPS) bench-web

console: ## Build the page that a wheel's server shows; wheels that are built after it have it
	@$(STEPS) console

pages: ## make chromium, web and site, over the wheel that is there
	@$(STEPS) pages

ci: console test pages ## What CI runs on one machine; GitHub runs `make release`, `make compat` and `make ray` beside it

bench: ## Remake benches/results/* and the documents' tables on this machine
	@$(STEPS) bench

reproduce: ## Remake five published studies whole, for an hour and a half, the printed figures beside
	@$(STEPS) reproduce

faults: ## Kill, damage, fill and wear out a server, for an hour; remake the list of what it took
	@$(STEPS) faults

pictures: ## Draw benches/results/*.png, and write *.csv, from the stored records; git ignores both
	@$(STEPS) pictures

lint: ## Formatting, clippy, ruff and mypy only
	@$(STEPS) lint

wheel: ## Build the release wheel and install it in .venv
	@$(STEPS) wheel

wheels: ## Build into dist/ the release wheels of every system that this machine can link for
	@$(STEPS) wheels

lock: ## Resolve the lock files again from pyproject.toml
	@$(STEPS) lock

version: ## Write the number of a release in every file: make version V=0.2.0
	@$(PYTHON) tools/release.py set $(V)

clean: ## Remove .venv, target and the demo's folder
	rm -rf .venv .venv-compat .venv-chroma .venv-ray .venv-site target demo-data js/node_modules js/*/dist js/client/src/wasm crates/server/console/assets crates/server/console/index.html*
