# Every target sets up what it needs by itself; `make help` lists them.

PYTHON := .venv/bin/python
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-unit test-long lint clean
.PHONY: bench bench-peers bench-site bench-sites bench-replicas bench-store

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install everything Fogline needs into .venv and build the connector
	@scripts/setup.sh

demo: setup ## run the smart-city demo: simulated sensors, live insights
	@.venv/bin/fogline demo $(ARGS)

test: setup ## run the tests that protect a change: all but the long ones; ARGS="-k name" picks some
	@$(PYTHON) -m pytest -n 2 -m "not long" $(ARGS)

test-unit: setup ## run the tests without Spark and without processes, in two minutes
	@$(PYTHON) -m pytest -n 2 -m unit $(ARGS)

test-long: setup ## run kill matrices, load, and property tests with many more examples
	@$(PYTHON) -m pytest -m "long or hypothesis" --hypothesis-profile long --timeout 3600 $(ARGS)

lint: setup ## check style and types
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy

bench: setup ## measure throughput, warm and as whole commands; ARGS go to the benchmark
	@$(PYTHON) bench/run.py $(ARGS)

bench-peers: setup ## install Bytewax and Flink (a large download), then the same measurements
	@scripts/setup-peers.sh
	@$(PYTHON) bench/run.py $(ARGS)

bench-site: setup ## measure a live site: latency, intake, the log, idle, an hour's load
	@$(PYTHON) bench/site.py $(ARGS)

bench-sites: setup ## measure many sites: deploying chains, gateways, the store
	@$(PYTHON) bench/sites.py $(ARGS)

bench-replicas: setup ## simulate where replicas go: unstable nodes, queries
	@$(PYTHON) bench/replicas.py $(ARGS)

bench-store: setup ## measure the store, beside SQLite and PostgreSQL, and the storage fabric
	@$(PYTHON) bench/store.py $(ARGS)

clean: ## remove what was built and cached; .venv stays (rm -rf .venv to start from nothing)
	@rm -rf build dist src/*.egg-info src/fogline/spark/*.jar src/fogline/spark/*.jsa
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	@find src tests connector bench scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
