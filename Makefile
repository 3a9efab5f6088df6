# Needs Python >= 3.11 and make; everything else is fetched into .venv from the lock files.
PYTHON ?= python3
UV := .venv/bin/uv
PYTEST := .venv/bin/pytest
SERVER := packages/holdfast-server
PACKAGES := $(SERVER) packages/holdfast-verify packages/holdfast-demo
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' $(SERVER)/pyproject.toml)

.PHONY: help run test test-long soak contact-sheet tasks conformance lint format lock bench wheel clean
help: ## Say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-13s %s\n", $$1, $$2}'

run: .venv/.run .venv/.run-alone ## Start everything on the bundled database and print addresses and keys; PORT=9000 takes 9000 to 9003
	@.venv/bin/holdfast up $(if $(filter command,$(origin PORT)),--port $(PORT))

test: .venv/.dev ## Run all tests but the long ones, on all cores; with ARGS="..." what they name
	@$(PYTEST) $(or $(ARGS),-m "not long" $(ON_ALL_CORES))

test-long: .venv/.dev ## Run the long tests, which tests/long.py lists
	@$(PYTEST) -m long $(ON_ALL_CORES) $(ARGS)
ON_ALL_CORES := --numprocesses auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0

soak: .venv/.dev ## Run the long versions of tests of faults, models and pages
	@HOLDFAST_SOAK=1 $(PYTEST) tests/faults tests/models tests/browser tests/inventory/test_ledger_under_kills.py tests/inventory/sync/test_benchmark.py tests/test_published_schemas.py $(ARGS)

contact-sheet: .venv/.dev ## Draw every page in four looks into contact-sheet/index.html; takes some minutes
	@.venv/bin/python -m tests.browser.contact_sheet $(ARGS)

tasks: .venv/.dev ## Do what people come for in a browser, count clicks and seconds, and store pictures in tasks/
	@.venv/bin/python -m tests.browser.tasks $(ARGS)

conformance: .venv/.dev ## Hold the agent endpoint to its protocol with the official suite
	@.venv/bin/python -m tests.conformance.run $(ARGS)

lint: .venv/.dev ## Check style, types and import rules
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/lint-imports --no-cache && .venv/bin/pyright

format: .venv/.dev ## Bring the code into shape
	@.venv/bin/ruff check --fix . && .venv/bin/ruff format .

bench: .venv/.dev ## Measure, ours beside its floor; takes some minutes
	@for each in registrations log_share stock mcp queue pages page_costs reads memory mails webhooks webhook_share watchers sync; do .venv/bin/python -m benchmarks.$$each $(ARGS) || exit 1; done
	@.venv/bin/python -m benchmarks.growth --registrations 400000 --events 20000 --queues 2000 --organizers 500 \
		--prices 20000 --entries 200000 --variants 20000 --shops 500 --share 20

lock: $(UV) ## Renew the lock files from the pyproject.toml of each package
	@$(UV) pip compile $(LOCK) --group build -o requirements-build.lock
	@$(UV) pip compile $(LOCK) --extra demo --extra redis --extra s3 -o requirements.lock $(SERVER)/pyproject.toml
	@$(UV) pip compile $(LOCK) --extra demo --constraint requirements.lock -o requirements-run.lock $(SERVER)/pyproject.toml
	@$(UV) pip compile $(LOCK) --extra demo --extra redis --extra s3 --group dev -o requirements-dev.lock $(SERVER)/pyproject.toml
LOCK := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	$(foreach package,$(PACKAGES),--no-emit-package $(notdir $(package)))

clean: ## Remove the environment and the bundled database
	@rm -rf .venv .holdfast

wheel: $(UV) ## Build the distributions in dist/, and print their files
	@for package in $(PACKAGES); do \
		$(UV) build --quiet --wheel --no-build-isolation --python .venv --out-dir dist $$package || exit 1; done
	@ls dist/holdfast_*-$(VERSION)-*.whl

# A network that inspects TLS signs with a certificate of its own. uv reads it from SSL_CERT_FILE, pip from PIP_CERT.
ifdef SSL_CERT_FILE
export PIP_CERT ?= $(SSL_CERT_FILE)
endif
OR_SAY_WHY := || { echo "The packages could not be installed; the lines above say why. If a certificate is not trusted, \
	your network inspects TLS: set SSL_CERT_FILE to the file with its certificate (PEM), and try again." >&2; exit 1; }

$(UV): requirements-build.lock
	@echo "Making the environment in .venv"
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.lock $(OR_SAY_WHY)
	@touch $@

# What runs: neither the extras redis and s3, nor what tests and builds need.
.venv/.run: requirements-run.lock requirements-build.lock $(PACKAGES:=/pyproject.toml)
	@$(MAKE) --no-print-directory $(UV)
	@$(UV) pip install --quiet --require-hashes --requirement requirements-run.lock $(OR_SAY_WHY)
	@$(UV) pip install --quiet --no-deps --no-build-isolation $(addprefix --editable ,$(PACKAGES))
	@touch $@

# What has installed is of no use to who only runs; the next installation fetches it again.
.venv/.run-alone: .venv/.run
	@test -e .venv/.dev || .venv/bin/python -m pip uninstall --quiet --yes uv uv-build setuptools pip 2>/dev/null
	@touch $@

.venv/.dev: .venv/.run requirements-dev.lock
	@$(MAKE) --no-print-directory $(UV)
	@$(UV) pip install --quiet --require-hashes --requirement requirements-dev.lock $(OR_SAY_WHY)
	@touch $@
