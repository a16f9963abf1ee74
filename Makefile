.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

BIN := .venv/bin
UV ?= uv
# Many tests wait for processes, so there are more workers than cores on a small machine.
TEST_WORKERS ?= 4
PYTEST_ARGS ?=
# Some machines set it; here hundreds of short processes would compile the same files again.
unexport PYTHONDONTWRITEBYTECODE
LOCK := pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	--no-emit-index-url --no-header --no-annotate

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: ## a .venv with the pinned dependencies, nothing else
	@scripts/set_up.sh dev

.PHONY: install-runtime
install-runtime:
	@scripts/set_up.sh runtime

.PHONY: run
run: install-runtime ## set up, then serve on an embedded SQLite store
	@exec $(BIN)/cuepost serve

# These run separately, to measure their coverage, and are not repeated with the others.
COVERED := tests/unit/domain packages/receiver/tests

.PHONY: test
ifeq ($(strip $(PYTEST_ARGS)),)
test: install browser clients tools coverage ## set up, then every test (PYTEST_ARGS=… to choose)
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal tests $(COVERED:%=--ignore=%)
else
test: install browser clients tools
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal $(PYTEST_ARGS)
endif

# Format, lint, and the tests that need neither PostgreSQL, a browser nor the network.
QUICK := tests/unit tests/application tests/spec tests/architecture/test_function_length.py \
	packages/receiver/tests/test_verify.py packages/receiver/tests/test_doctor.py
QUICK_WITHOUT := tests/unit/test_wheel.py tests/unit/test_extras.py tests/unit/test_test_postgres.py

.PHONY: quick
quick: install ## a quick check after each change: under a minute on two cores
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python -m pytest -q -n 2 -k "not postgres and not racing" $(QUICK) \
		$(QUICK_WITHOUT:%=--ignore=%) $(PYTEST_ARGS)

.PHONY: browser
browser: install # a Chromium for the tests of the pages, where none is and we may install one
	@$(BIN)/python -m tests.support.browser

# After the browser: both may call apt-get, which runs once at a time.
.PHONY: clients
clients: install browser # the npm packages of tests: generated API clients, an OpenID provider
	@$(BIN)/python -m tests.support.node_packages

# Also after the browser, for the same reason.
.PHONY: tools
tools: install browser # programs that check the operator's kit, from Debian's packages
	@$(BIN)/python -m tests.support.operator_tools

.PHONY: check
check: install ## what CI runs: format, lint, types, layering, coverage, every test
	@$(MAKE) --no-print-directory --jobs=2 lint test

.PHONY: lint
lint: install ## format, lint, spelling, types, layering; no tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter
	@if [ -f scripts/reference.py ]; then set -x; $(BIN)/python scripts/reference.py --check; fi

.PHONY: coverage
coverage: install ## full coverage of the domain and the receiver kit by their own tests
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(BIN)/coverage run -m pytest -n $(TEST_WORKERS) $(COVERED)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=100

# The long forms of proofs that `make test` has in short; hours on a small machine. Each can be run
# alone: make proof PROOF="tests/faults/test_kills.py"
PROOF ?= tests/faults tests/simulation tests/model tests/fuzz tests/engine/test_disk_full.py \
	tests/engine/test_store_errors.py tests/engine/test_store_faults.py \
	tests/engine/test_sqlstates.py tests/history \
	tests/e2e/test_large_downloads.py packages/receiver/tests tests/interfaces/rest/test_schemathesis.py \
	tests/adapters/test_hostile_mixes.py tests/inbound/test_hostile_clients.py \
	tests/e2e/test_install.py tests/deploy/test_dockerfile.py tests/deploy/test_behind_nginx.py \
	tests/docs/test_walks.py tests/browser/test_every_page.py

.PHONY: proof
proof: install ## the long proofs: kills, failing databases, seeds, a million deliveries
	@CUEPOST_SIMULATION_SEEDS=20000 CUEPOST_TEST_MODEL_EXAMPLES=10000 \
	CUEPOST_TEST_STORE_ERRORS=all CUEPOST_TEST_DISK_FULL=50 \
	CUEPOST_TEST_KILLS=1000 CUEPOST_TEST_DATABASE_FAULTS=50 \
	CUEPOST_TEST_SQLSTATES=all CUEPOST_TEST_ACCOUNT_MOVES=20 \
	CUEPOST_TEST_CLOCKS=all CUEPOST_TEST_FAILOVERS=50 CUEPOST_TEST_REKEY_KILLS=100 CUEPOST_TEST_IDLE_CONNECTIONS=5000 \
	CUEPOST_TEST_HOSTILE_CLIENT_MIXES=1000 CUEPOST_TEST_ATTACK_PERIODS=60 \
	CUEPOST_TEST_RECEIVER_KILLS=1000 CUEPOST_TEST_HISTORY_ROWS=1000000 \
	CUEPOST_TEST_DOWNLOAD_MIB=5120 CUEPOST_TEST_SCHEMATHESIS_EXAMPLES=1000 \
	CUEPOST_TEST_FUZZ_EXAMPLES=2000 CUEPOST_TEST_HOSTILE_MIXES=10000 \
	CUEPOST_TEST_PAGE_VARIANTS=all CUEPOST_TEST_INSTALL=all CUEPOST_TEST_ROLLING_RESTARTS=20 CUEPOST_TEST_VERSION_CHANGES=20 CUEPOST_TEST_CONTENTION_ROUNDS=200 CUEPOST_TEST_CONTENTION_EVENTS=10000 \
	$(BIN)/python -m pytest -n 1 -o timeout=86400 $(PROOF) $(PYTEST_ARGS)

# What to run and where to keep the figures: make bench BENCH="bare delivery --json figures.json".
# The figures of the last run go into docs/benchmarks.md by `make bench-write`.
BENCH ?= --json .cache/benchmarks.json

.PHONY: bench
bench: install ## the benchmark suite: ratios, not absolute times (BENCH=… to choose)
	@scripts/set_up.sh peers || echo "the peers could not be installed; they are left out" >&2
	@mkdir -p .cache
	@$(BIN)/python -m benchmarks.set_up
	@$(BIN)/python -m benchmarks $(BENCH)

.PHONY: bench-write
bench-write: install # the tables of the last run, into the document
	@$(BIN)/python -m benchmarks --from .cache/benchmarks.json --write docs/benchmarks.md

.PHONY: peers
peers: # an environment for the task queues that the benchmarks compare cuepost with
	@scripts/set_up.sh peers

.PHONY: screenshots
screenshots: install ## screenshots of every settings page, into docs/screenshots
	@PYTHONPATH=. $(BIN)/python scripts/screenshots.py

.PHONY: audit
audit: install ## check the pinned packages against known advisories (skipped if these cannot be fetched)
	@scripts/set_up.sh audit
	@$(BIN)/python scripts/audit.py

.PHONY: mutation
mutation: install ## mutate signing, schedule, states and egress policy; tests must fail
	@$(BIN)/python scripts/mutate.py

SOAK_MINUTES ?= 60
SOAK_DELIVERIES ?= 500000

.PHONY: soak
soak: install ## a service at work for an hour: nothing lost, memory and descriptors flat
	@$(BIN)/python -m benchmarks.soak --minutes $(SOAK_MINUTES) --deliveries $(SOAK_DELIVERIES)

.PHONY: docs
docs: install ## the documentation as a site in .cache/site; every link is checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "The site is in .cache/site; open .cache/site/index.html"

# The interpreter that the wheel is installed for: make release RELEASE_PYTHON=python3.13
RELEASE_PYTHON ?= $(BIN)/python

.PHONY: release
release: install ## sdists and wheels in dist/, checked in an empty venv, with notes
	@$(BIN)/python scripts/release.py --python "$(RELEASE_PYTHON)"

.PHONY: format
format: install ## apply the format that `check` requires
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: lock
lock: ## resolve and pin again (needs uv)
	cd requirements && $(UV) $(LOCK) runtime.in -o runtime.txt
	cd requirements && $(UV) $(LOCK) dev.in -o dev.txt
	cd requirements && $(UV) $(LOCK) build.in -o build.txt
	cd requirements && $(UV) $(LOCK) peers.in -o peers.txt
	cd requirements && $(UV) $(LOCK) audit.in -o audit.txt

.PHONY: clean
clean: ## remove what set-up, tests and checks made
	rm -rf .venv .set-up.lock .cache .hypothesis build dist
	find src tests packages -name __pycache__ -type d -prune -exec rm -rf {} +
