# `make help` lists what there is. Everything lives in .venv and .servers; nothing is installed on the machine.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
export LEASEQ_SERVERS_DIR ?= $(CURDIR)/.servers

# The gate: oldest supported, Debian's, newest Valkey. The others run with `make test-servers`.
TEST_SERVERS ?= redis-6.2.14,redis-7.0,valkey-9.1.2
ALL_SERVERS ?= $(TEST_SERVERS),redis-7.2,redis-7.4,redis-8.0t,redis-8.2,redis-8.10,valkey-8.0,valkey-8.1,valkey-9.0,redict-7.3

# What every server must do alike; the other tests are about the client and run on the gate's servers.
CONTRACT := $(addprefix python/tests/test_,servers.py state_table.py access_rules.py \
  script_rules.py script_arguments.py script_costs.py script_errors.py script_options.py \
  model_edges.py model_ends.py model_handoff.py model_limits.py model_outcomes.py model_repair.py \
  rules.py rules_life.py rules_queues.py rules_stored.py \
  conformance_vectors.py)

# A part that is not there (an sdist has no benchmarks) is not an error.
PYTHON_DIRS := $(wildcard python lua cleaner benchmarks conformance-tests tools docs)
TYPED_DIRS := $(wildcard python lua cleaner benchmarks conformance-tests docs)
SHELL_SCRIPTS := .ci/run $(wildcard tools/*.sh tools/*/*.sh)

PYTEST := $(BIN)/python -m pytest
# Each process has servers of its own; a file's tests stay together.
IN_PARALLEL := -n 2 --dist loadfile

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## create .venv with leaseq (editable), every extra and the tools

$(STAMP): pyproject.toml
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	touch $@

.PHONY: demo
demo: setup ## the queue at work, live in the terminal, on a server of its own
	$(BIN)/leaseq demo

.PHONY: test
test: lint servers-core typescript-where-node conformance-test ## everything a change must pass: linters, types, generated files, tests on three servers
	$(PYTEST) $(IN_PARALLEL) --server=$(TEST_SERVERS)

.PHONY: typescript
typescript: servers-core ## the TypeScript client: biome, tsc, its tests on one server; needs Node
	tools/node.sh npm --prefix typescript ci --ignore-scripts --no-audit --no-fund
	tools/node.sh npm --prefix typescript run lint
	tools/node.sh npm --prefix typescript test

.PHONY: typescript-where-node
typescript-where-node: servers-core # without Node the rest is tested, and tools/node.sh says how to get it; CI has it
	if tools/node.sh true; then $(MAKE) typescript; else [ -z "$${CI:-}" ]; fi

# Each adapter: those of Python, and where there is Node that of TypeScript.
CONFORMANCE := $(BIN)/python conformance-tests/matrix.py

.PHONY: conformance-test
conformance-test: servers-core typescript-where-node ## each adapter through the conformance suite, on one server
	$(CONFORMANCE) --servers valkey-9.1.2 \
	  --adapters python,asyncio$$(if tools/node.sh true 2>/dev/null; then echo ,typescript; fi)

.PHONY: conformance
conformance: servers-core ## the three adapters through the conformance suite, on three servers; needs Node
	tools/node.sh npm --prefix typescript ci --ignore-scripts --no-audit --no-fund
	tools/node.sh npm --prefix typescript run build
	$(CONFORMANCE) --servers $(TEST_SERVERS) --adapters python,asyncio,typescript

.PHONY: test-quick
test-quick: setup ## the tests on one server, nothing else
	$(PYTEST) $(IN_PARALLEL)

.PHONY: test-servers
test-servers: servers ## the contract (scripts, state table, rules) on every server that can be fetched
	$(PYTEST) $(IN_PARALLEL) --server=$(ALL_SERVERS) $(CONTRACT)

.PHONY: lint
lint: setup luacheck ## ruff, format, mypy, shellcheck, hadolint, luacheck, and whether generated files are fresh
	$(BIN)/ruff check $(PYTHON_DIRS)
	$(BIN)/ruff format --check $(PYTHON_DIRS)
	$(BIN)/mypy $(TYPED_DIRS)
	$(BIN)/shellcheck $(SHELL_SCRIPTS)
	$(BIN)/hadolint cleaner/Dockerfile
	rendered=$$(mktemp -d); trap 'rm -rf "$$rendered"' EXIT; \
	  $(BIN)/python lua/bundle.py --render "$$rendered"; tools/luacheck.sh "$$rendered"
	$(BIN)/python lua/bundle.py --check
	$(BIN)/python python/unasync.py --check
	$(BIN)/python -m leaseq_conformance.vectors.generate --check
	if [ -d benchmarks ]; then cd benchmarks && ../$(BIN)/python -m peers tables --check; fi

.PHONY: format
format: setup ## let ruff rewrite what it can
	$(BIN)/ruff check --fix-only $(PYTHON_DIRS)
	$(BIN)/ruff format $(PYTHON_DIRS)

.PHONY: generate
generate: setup ## rewrite the generated files: script modules of the clients, the sync half of the Python client, vectors, tables
	$(BIN)/python lua/bundle.py
	$(BIN)/python python/unasync.py
	$(BIN)/python -m leaseq_conformance.vectors.generate
	if [ -d benchmarks ]; then cd benchmarks && ../$(BIN)/python -m peers tables; fi

.PHONY: conformance-selftest
conformance-selftest: setup ## the conformance suite judged: every seeded bug must fail its case; prints the score; needs Go
	$(BIN)/leaseq-conformance selftest

.PHONY: docs
docs: setup ## build the documentation into docs/_build; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

.PHONY: pictures
pictures: setup ## draw the pictures of the documentation anew: what the command line shows on a server at work
	$(BIN)/python docs/pictures.py

.PHONY: bench
bench: setup servers-core ## what leaseq costs the server, next to the floor; fails when a target is missed
	$(BIN)/python benchmarks/core.py

.PHONY: bench-peers
bench-peers: setup servers-core ## leaseq beside the libraries people would otherwise take, within 40 minutes; needs Node
	cd benchmarks && ../$(BIN)/python -m peers $(PEERS_OPTIONS)

.PHONY: luacheck
luacheck: ## fetch luacheck unless it is on PATH
	tools/luacheck.sh --fetch

.PHONY: servers-core
servers-core: setup ## fetch the servers that `make test` needs
	tools/servers/fetch.sh $(TEST_SERVERS) $(BIN)/python

.PHONY: servers
servers: setup ## fetch every server that `make test-servers` needs (about 400 MB)
	tools/servers/fetch.sh $(ALL_SERVERS) $(BIN)/python

.PHONY: clean
clean: ## remove .venv, .servers, caches and build results
	rm -rf .venv .servers .peers .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist docs/_build
	rm -rf typescript/node_modules typescript/dist
	find python lua cleaner conformance-tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
