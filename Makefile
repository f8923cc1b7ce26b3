# Everything sets itself up: `make run` and `make test` need Python 3.11, make and a C compiler, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

.DEFAULT_GOAL := help
.PHONY: help run serve test soak mutate check bench docs screenshots clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(READY) ## set up, then reproduce the paper at a small size and write a report
	$(BIN)/thrifty reproduce --quick

serve: $(READY) ## set up, then run the decision service with simulated SMS traffic: http://127.0.0.1:8321
	$(BIN)/thrifty serve --traffic --log-level warning

soak: $(READY) ## the long tests: fifty kills each under load; 100,000 steps of the router and its twin; 100,000 random requests
	THRIFTY_SOAK=1 $(BIN)/pytest -n 0 tests/service/test_kill.py
	THRIFTY_SOAK=1 THRIFTY_TWIN_STEPS=100000 $(BIN)/pytest -n 0 tests/router/test_twin.py tests/router/test_twin_replicas.py
	THRIFTY_SOAK=1 THRIFTY_FUZZ_REQUESTS=100000 THRIFTY_FUZZ_COMPILE=background $(BIN)/pytest -n 0 tests/service/test_fuzz.py

mutate: $(READY) ## put small faults into the rooms that decide, count those that the tests find, and write docs/mutation.md
	$(BIN)/python -m tests.mutation.run

# A file's tests stay on one core, so that no kernel is compiled twice; but schemathesis gives all its cases one name, and then only one would run.
# It waits more than it computes, so it runs beside the others. tests/conftest.py says which files begin first, so nothing else may reorder them.
# The tests start hundreds of processes: each reads modules that one of them has compiled, whatever the environment says of that.
test: export PYTHONDONTWRITEBYTECODE =
test: check ## set up, check, and run every test
	@$(BIN)/python -m tests.dashboard.browser
	@$(BIN)/pytest -n 0 tests/service/test_schema.py > $(VENV)/schema.log 2>&1 & schema=$$!; \
	$(BIN)/pytest --dist loadfile --no-loadscope-reorder --ignore tests/service/test_schema.py; others=$$?; \
	wait $$schema; apart=$$?; cat $(VENV)/schema.log; exit $$((others + apart))

check: $(READY) ## ruff, mypy --strict and the import walls; warnings are errors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(READY) ## measure against C and the peers, and write docs/benchmarks.md, service-, replay- and world-benchmarks.md, honesty.md
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/stalls.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python -m benchmarks.honesty
	$(BIN)/python benchmarks/world.py

# Not --quiet: mkdocs would not count warnings then, and --strict would let them pass.
docs: $(DOCS_READY) ## set up, then build the documentation into site/; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html; for the search, serve it: $(BIN)/python -m http.server --directory site"

screenshots: $(READY) ## take pictures of every page of the dashboard, with simulated traffic, into docs/assets/dashboard (5 minutes)
	$(BIN)/python -m tests.dashboard.screenshots

clean: ## remove the environment, the caches and the built documentation
	rm -rf $(VENV) site .mutation .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "thrifty needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "installing python3-venv"; apt-get update -q && apt-get install -qy python3-venv; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The packages of the documentation are apart, so that `make test` does not wait for them.
$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@
