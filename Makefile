# Every target sets up what it needs, on a fresh machine too: see .ci/setup.
SHELL := bash
.DEFAULT_GOAL := help

VENV ?= .venv
export VENV
export PYTHON
# Most tests that start a Python, and Spark's workers, import all of kwire: its modules are compiled once.
export PYTHONDONTWRITEBYTECODE =
# What to pass on, e.g.  make test ARGS="-k capture -x"
ARGS ?=
FUZZ_SECONDS ?= 60
FUZZ_HOURS ?= 8
# For make bench: codec, records or captures; and which others of benchmarks/.
FAMILY ?=
BENCH ?=

# Not :=, which would take VENV as it is here, whatever a target sets.
PY = $(VENV)/bin/python
PYTEST = $(PY) -m pytest
# As many processes as processors; the tests of a file stay in one of them (ARGS="-n 0" for a debugger). Files begin in the
# order in which they are named.
SIDE_BY_SIDE := -n auto --dist loadfile --no-loadscope-reorder
# Spark takes its Java from JAVA_HOME; the set-up has found one that is recent enough.
WITH_JAVA = JAVA_HOME="$$(cat $(VENV)/java-home)"

.PHONY: help
help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup:  ## the virtual environment with everything for development
	@.ci/setup --java dev bench

.PHONY: demo
demo:  ## decode a real broker capture in Spark and print what is in it
	@.ci/setup --java spark
	$(WITH_JAVA) $(PY) examples/demo.py $(ARGS)

# Every folder of tests is one of these, or has a target of its own. What takes long begins first: at the end no process
# waits for another.
TESTS := tests/spark tests/golden tests/property tests/regressions tests/unit

.PHONY: test
test:  ## unit, property, golden and Spark tests, but for those that take long
	@.ci/setup --java dev bench
	$(PY) -m kwire.cli compile
	$(WITH_JAVA) $(PYTEST) --part quick $(SIDE_BY_SIDE) $(TESTS) $(ARGS)

.PHONY: test-wide
test-wide:  ## what is marked as wide: the rest of them
	@.ci/setup --java dev bench
	$(PY) -m kwire.cli compile
	$(WITH_JAVA) $(PYTEST) --part wide $(SIDE_BY_SIDE) $(TESTS) $(ARGS)

.PHONY: test-all
test-all:  ## both of them in one run: tests are collected, and Spark starts, once
	@.ci/setup --java dev bench
	$(PY) -m kwire.cli compile
	$(WITH_JAVA) $(PYTEST) $(SIDE_BY_SIDE) $(TESTS) $(ARGS)

.PHONY: test-unit
test-unit:  ## unit and property tests (PYTHON=python3.13 VENV=.venv-3.13 for another Python)
	@.ci/setup dev bench
	$(PYTEST) $(SIDE_BY_SIDE) $(wildcard tests/property tests/unit) $(ARGS)

.PHONY: test-oldest
test-oldest: VENV := .venv-oldest
test-oldest:  ## tests of codecs, records, tables and segments with the oldest packages that are allowed
	@PIP_CONSTRAINT=tests/oldest.txt .ci/setup test
	$(PYTEST) $(SIDE_BY_SIDE) --part quick $(addprefix tests/unit/,codec log protocol records tables) $(ARGS)

.PHONY: test-connect
test-connect: VENV := .venv-connect
test-connect:  ## tests with a server of Spark Connect; that needs pandas, which no other environment has
	@.ci/setup --over .venv --java test connect
	$(WITH_JAVA) $(PYTEST) tests/connect $(ARGS)

.PHONY: test-exhaustive
test-exhaustive:  ## the property tests with many more examples
	@.ci/setup dev bench
	$(PYTEST) $(SIDE_BY_SIDE) tests/property --hypothesis-profile=exhaustive $(ARGS)

.PHONY: test-broker
test-broker:  ## tests that start a real Kafka broker
	@.ci/setup --tools --jdk dev bench
	$(WITH_JAVA) $(PYTEST) tests/broker $(ARGS)

.PHONY: test-kafka
test-kafka:  ## the codecs against Kafka's own Java classes
	@.ci/setup --jdk dev
	$(WITH_JAVA) $(PYTEST) tests/kafka $(ARGS)

.PHONY: check
check:  ## lint, format, types, import contracts, stubs, docs
	@.ci/setup dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PY) -m kwire.codec.stubs --check
	$(PY) docs/fill.py --check

.PHONY: docs
docs:  ## what docs and stubs take from the code
	@.ci/setup dev
	$(PY) docs/fill.py
	$(PY) -m kwire.codec.stubs

.PHONY: pictures
pictures:  ## the pictures of the docs, from golden captures; screenshots need a headless Chromium
	@.ci/setup dev
	$(PY) docs/pictures.py $(ARGS)

.PHONY: site
site:  ## the site in build/site/html: all pages, one for each API, KIP and module, the protocol explorer
	@.ci/setup dev docs
	$(PY) docs/make_site.py $(ARGS)

.PHONY: verify-types
verify-types:  ## whether each public name has a type that is known (pyright)
	@.ci/setup dev
	$(PY) .ci/verify-types

.PHONY: audit
audit:  ## the packages that were installed, by hash, and what is known against them
	@.ci/setup dev bench
	$(PY) .ci/audit

.PHONY: format
format:  ## let ruff put the sources in order
	@.ci/setup dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

.PHONY: bench
bench:  ## a page of kwire beside others: build/bench (FAMILY=codec for a part, BENCH=benchmarks/tls.py for another)
	@.ci/setup dev bench
	$(PY) $(or $(BENCH),benchmarks/bench.py $(addprefix --family ,$(FAMILY))) $(ARGS)

.PHONY: fuzz
fuzz:  ## the fuzz harnesses for FUZZ_SECONDS (60) in all: half of them at random, half guided by coverage
	@.ci/setup guided
	$(PY) -m fuzz --seconds $(FUZZ_SECONDS) --kernels python $(ARGS)

.PHONY: fuzz-long
fuzz-long:  ## the same guided by coverage for FUZZ_HOURS (8), two minutes of each at a time; it goes on where it was
	@.ci/setup guided
	$(PY) -m fuzz --way guided --turn 120 --seconds $$(($(FUZZ_HOURS) * 3600)) $(ARGS)

.PHONY: planted
planted:  ## defects that were planted must be found (ARGS="bounds" for some of them); up to an hour
	@.ci/setup dev guided
	$(PY) tests/support/planted.py $(ARGS)

# The tests that concern the packages of which coverage is stated. Kernels run as Python, so their lines count too.
COVERED := wire.py codec records protocol capture log
# Those of the compiler itself need it.
COVERING := $(addprefix tests/unit/,test_wire.py codec schema protocol records capture log payloads tables) \
	$(filter-out $(addprefix tests/unit/kernels/test_,cache.py engine.py fence.py helpers.py),$(wildcard tests/unit/kernels/test_*.py)) \
	$(addprefix tests/property/test_,layouts.py bodies.py connection.py records.py tracker.py encrypted.py) \
	tests/golden/test_batches.py tests/regressions

.PHONY: coverage
coverage: export NUMBA_DISABLE_JIT = 1
coverage:  ## lines and branches that tests reach in wire, codec, records, protocol, capture and log
	@.ci/setup dev mutants
	$(PY) -m coverage erase
	for one in $(COVERING); do \
		$(PY) -m coverage run --parallel-mode -m pytest --part quick -q -k "not machine" $$one $(ARGS) || \
			echo "=== $$one: some tests want machine code"; done
	$(PY) -m coverage combine -q
	for one in $(COVERED); do echo "=== $$one"; \
		$(PY) -m coverage report --include="kwire/$$one,kwire/$$one/*" --skip-covered --show-missing; done

.PHONY: mutants
mutants:  ## changes of the code that tests must notice: 60 in each of those packages (ARGS="--package wire")
	@.ci/setup dev mutants
	$(PY) tests/support/mutants.py $(ARGS)

.PHONY: dist
dist:  ## wheel and source distribution in dist/, the same bytes each time
	@.ci/setup dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(PY) -m hatchling build

.PHONY: sbom
sbom:  ## the bill of materials of what users install, in build/kwire.cdx.json
	@.ci/setup dist
	$(PY) .ci/sbom build/kwire.cdx.json

.PHONY: clean
clean:  ## remove what the other targets made, the virtual environment included
	rm -rf $(VENV) build dist demo-output .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
