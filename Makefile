# The two commands of the README are `make demo` and `make test`; `make` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

SCALE ?= 0.01
ROUNDS ?= 3
TESTS ?= tests
STEPS ?= 10000
SEED ?= 1
WORKERS ?= 2
CASES ?= 100000
SEED ?= 1
PROCESSES ?= 2
KEYS ?= recent
CHANGED ?= 0.01
CELLS ?= all
PYTHON ?=

VENV := .venv
BIN := $(VENV)/bin
DOCS_VENV := .venv-docs
INSTALLED := $(VENV)/.installed
ARCHIVED := $(VENV)/.class-archive

# Each of the two test workers runs a Spark, and sometimes starts a child process with another one. A heap has
# 2 GiB (the profile's default of driver_memory), so tests need up to 8 GiB. More WORKERS need more memory.
export DBT_SEND_ANONYMOUS_USAGE_STATS ?= false
# In the checkout instead of the user's cache folder, so that both are removed together.
export DBT_ARCTIC_CACHE_DIR ?= $(CURDIR)/$(VENV)/cache
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  make demo SCALE=0.1 ROUNDS=5      a larger demo"
	@echo "  make test TESTS=tests/unit        one folder, file or test"
	@echo "  make soak STEPS=10000 SEED=7      a longer soak; SPARK=100 KILLS=5 for less of these"

.PHONY: demo
demo: java $(ARCHIVED) ## Load TPC-H data, refresh, compact, compare with a rebuild
	@$(BIN)/python example_project/demo.py --scale $(SCALE) --rounds $(ROUNDS)

.PHONY: test
test: java $(ARCHIVED) ## Run all tests in their short form
	@$(BIN)/python -m pytest $(TESTS) -n $(WORKERS) --dist loadscope --no-loadscope-reorder --durations 20 --durations-min 20

.PHONY: test-long
test-long: export ARCTIC_TESTS := long
test-long: test ## Run all tests in their long form: all seeds and cases; two to three times as long

.PHONY: check
check: $(INSTALLED) ## Lint, types, import rule, unit tests: under a minute, no Java
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/python -m pytest tests/unit -q -n $(WORKERS)

.PHONY: docs
docs: $(DOCS_VENV)/.installed ## Build the documentation's site in build/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build
	@echo "build/site/index.html"

$(DOCS_VENV)/.installed: docs/requirements.txt
	@python=$$(PYTHON="$(PYTHON)" .ci/machine python) && $$python -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/pip install --quiet --requirement $<
	@touch $@

.PHONY: release-check
release-check: java $(ARCHIVED) ## Build sdist and wheel, check their contents, install and use the wheel: minutes
	@$(BIN)/python -m tests.packaging.release

.PHONY: bench
bench: java ## Compare with other products, for hours: DIR=folder, SCALE=5 (million rows), ROUNDS, PEERS=arctic,delta
	@$(if $(DIR),,echo "make bench needs DIR, a folder with space: make bench DIR=bench SCALE=1" >&2; exit 1)
	@$(BIN)/python -m benchmarks.peers --dir "$(DIR)" --rounds $(ROUNDS) --scale $(if $(filter file,$(origin SCALE)),1,$(SCALE)) \
	  $(if $(PEERS),--peers $(PEERS)) $(BENCH)

.PHONY: bench-smoke
bench-smoke: java ## Our own speed against MERGE on Iceberg, three minutes
	@$(BIN)/python -m benchmarks.peers.smoke

.PHONY: soak-planner
soak-planner: $(INSTALLED) ## Random queries for the planner, in DuckDB: CASES=100000 SEED=1 PROCESSES=2
	@$(BIN)/python -m tests.planner.soak --cases $(CASES) --seed $(SEED) --processes $(PROCESSES)

.PHONY: tpch
tpch: java $(ARCHIVED) ## TPC-H as automatic models: ROUNDS, SCALE, KEYS=recent|uniform, CHANGED=0.01, FULL=1 times
	@$(BIN)/python -m benchmarks.tpch --scale $(SCALE) --rounds $(ROUNDS) --keys $(KEYS) --changed $(CHANGED) \
	  $(if $(FULL),--full $(if $(filter plain,$(FULL)),plain,keyed)) $(TPCH)

.PHONY: bench-choice
bench-choice: java $(ARCHIVED) ## How often the chosen refresh is the faster one: SCALE, ROUNDS, MODELS=q01,share_of_total
	@$(BIN)/python -m benchmarks.choice --scale $(SCALE) --rounds $(ROUNDS) --changed $(CHANGED) --seed $(SEED) \
	  $(if $(MODELS),--models $(MODELS))

.PHONY: soak
soak: java $(ARCHIVED) ## Random operations on keyed tables, in memory and on Spark, and real kills: STEPS, SEED
	@$(BIN)/python -m tests.model.soak "$(STEPS)" "$(SEED)" "$(SPARK)" "$(KILLS)"

.PHONY: soak-dbt
soak-dbt: java $(ARCHIVED) ## Random dbt projects on Spark against an oracle: CASES=5000 runs, SEED=1 PROCESSES=2
	@$(BIN)/python -m tests.dbt.random.soak --cases $(if $(filter file,$(origin CASES)),5000,$(CASES)) --seed $(SEED) \
	  --processes $(PROCESSES)

.PHONY: soak-sources
soak-sources: java $(ARCHIVED) ## Random stories of a topic, files and a database, against an oracle: STEPS=2000 SEED=1
	@$(BIN)/python -m tests.dbt.sources.soak --steps $(if $(filter file,$(origin STEPS)),2000,$(STEPS)) --seed $(SEED)

.PHONY: soak-machines
soak-machines: java $(ARCHIVED) ## Two machines that share PostgreSQL and S3, which fail: STEPS=30 SEED=1
	@$(BIN)/python -m tests.faults.two_machines --steps $(if $(filter file,$(origin STEPS)),30,$(STEPS)) --seed $(SEED)

.PHONY: soak-cdc
soak-cdc: java $(ARCHIVED) ## Random stories of tables that are followed by change events: STEPS=2000 SEED=1
	@$(BIN)/python -m tests.dbt.sources.soak_cdc --steps $(if $(filter file,$(origin STEPS)),2000,$(STEPS)) --seed $(SEED)

.PHONY: bench-cdc
bench-cdc: java $(ARCHIVED) ## How fast a PostgreSQL is followed: ROWS=1000000 TABLES=60 CHANGES=200000
	@$(BIN)/python -m benchmarks.cdc --rows $(or $(ROWS),1000000) --tables $(or $(TABLES),60) \
	  --changes $(or $(CHANGES),200000)

.PHONY: bench-kafka
bench-kafka: java $(ARCHIVED) ## Messages a second from Kafka by key, and those of other products: MESSAGES=1000000 ROUNDS=4
	@$(BIN)/python -m benchmarks.topics --messages $(or $(MESSAGES),1000000) \
	  --rounds $(if $(filter file,$(origin ROUNDS)),4,$(ROUNDS))

.PHONY: bench-keep
bench-keep: java $(ARCHIVED) ## How current dbt-arctic keep is while messages arrive: MINUTES=30 RATE=1000 (a second)
	@$(BIN)/python -m benchmarks.topics.lag --minutes $(or $(MINUTES),30) --rate $(or $(RATE),1000)

.PHONY: matrix
matrix: java $(ARCHIVED) ## Catalogs, engines and stores, each started here: CELLS=all|postgres-embedded-file,..
	@$(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --editable '.[postgres,hive,glue,thrift]'
	@$(BIN)/python -m tests.matrix --cells "$(CELLS)"

.PHONY: dbt-utils
dbt-utils: java $(ARCHIVED) ## Run the integration tests of dbt-utils: DIR=path/to/its/checkout
	@$(BIN)/python benchmarks/dbt_utils.py "$(DIR)"

.PHONY: package-tests
package-tests: java $(ARCHIVED) ## Run the integration tests of a public package: DIR=path PACKAGES="path path" SCHEMA=name
	@$(BIN)/python -m benchmarks.package_tests "$(DIR)" $(if $(PACKAGES),--packages $(PACKAGES)) \
		$(if $(SCHEMA),--schema "$(SCHEMA)")

.PHONY: public
public: java $(ARCHIVED) ## Check a public dbt project with automatic models: DIR=path PACKAGES="path path" UNIQUE=file TIES=by_key
	@$(BIN)/python benchmarks/public_projects.py "$(DIR)" --rounds $(ROUNDS) --packages $(PACKAGES) \
		$(if $(UNIQUE),--keys "$(UNIQUE)") $(if $(SCHEMA),--schema "$(SCHEMA)") \
		$(if $(TIES),--ties "$(TIES)")

.PHONY: clean
clean: ## Remove what was built, cached and loaded; the environment .venv stays
	@rm -rf build dist ./*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .demo logs
	@rm -rf example_project/target example_project/logs example_project/lake
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# A new dependency or entry point requires a new installation. Other changes take effect at once.
$(INSTALLED): setup.py pyproject.toml .ci/constraints.txt dbt_arctic/_entry/__init__.py dbt_arctic/_entry/__version__.py
	@python=$$(PYTHON="$(PYTHON)" .ci/machine python) && \
	echo "Setting up $(VENV) with $$($$python --version): a few minutes, once" && \
	$$python -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --editable '.[dev]'
	@touch $@

.PHONY: java
java: $(INSTALLED)
	@.ci/machine java $(BIN)/python

# With it, every Spark of the tests and the demo starts in half the time.
$(ARCHIVED): $(INSTALLED) | java
	@echo "Making a class archive for Spark: a minute, once"
	@$(BIN)/dbt-arctic class-archive create
	@touch $@
