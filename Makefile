# The commands of the README. `make help` lists them.
PY := .venv/bin/python
# Of the tests; more than two cores keep busy, because tests wait for processes and browsers.
WORKERS ?= 3
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run:  ## install what running needs
	@deploy/bootstrap.sh requirements.lock

dev:  ## install what working on Dossier needs
	@deploy/bootstrap.sh requirements-dev.lock

demo: run  ## start everything, feed the demo world, print where to look; Ctrl-C stops
	@export DOSSIER_EVENTS_PORT="$${DOSSIER_EVENTS_PORT:-$${EVENTS_PORT:-}}"; unset EVENTS_PORT; exec $(PY) manage.py demo

demo-reset: run  ## forget the demo's data
	@$(PY) manage.py demo --reset

# Side by side, each part's output in one piece; one that fails stops none of the others, and fails the whole. Unit tests
# are two processes and not workers of one: each collects its own half, and what they do not use is not loaded.
PARTS := unit-first types unit-rest imports lint format
UNUSED := logging xdist schemathesis valkey anyio cacheprovider randomly
UNIT := $(PY) -m pytest -q --hypothesis-profile=brief $(UNUSED:%=-p no:%) -m "not soak and not simulated"
FIRST := tests/unit/analyzers tests/unit/benchmarks tests/unit/ingest

check: dev  ## format, lint, types, import contracts, migrations, unit tests but simulated worlds
	@$(MAKE) --no-print-directory --keep-going --output-sync=target --jobs=2 $(PARTS:%=check-%)

check-format:
	@$(PY) -m ruff format --check .

check-lint:
	@$(PY) -m ruff check .

check-imports:
	@.venv/bin/lint-imports

check-types:
	@$(PY) -m mypy

check-unit-first:
	@$(UNIT) $(FIRST)

check-unit-rest: # the migration check is among the tests of the architecture
	@$(UNIT) tests/unit tests/architecture --ignore=tests/unit/worlds $(FIRST:%=--ignore=%)

XDIST := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: dev  ## unit, integration, browser and architecture tests
	@$(PY) -m pytest -q $(XDIST) --ignore=tests/acceptance

acceptance: dev  ## whole installations: started, killed, two of everything, real senders, the fault lab
	@$(PY) -m pytest -q $(XDIST) tests/acceptance

soak: dev  ## the long ones: storms, kills, a million rows, property tests with new examples
	@$(PY) -m pytest -q -m soak
	@$(PY) -m pytest -q -m "hypothesis and not soak" --hypothesis-profile=explore

soak-nodes: dev  ## two nodes fed for an hour (SECONDS=600: ten minutes): memory, lag and disk
	@$(PY) -m tests.benchmarks.soak $(SECONDS)

bench: dev  ## the benchmark suite, about 50 minutes (SHARE=.2 of the trials: 35); writes a table and bench.json
	@$(PY) -m tests.benchmarks $(SHARE:%=--share %)

trace: dev  ## the files that a telemetry row and an alert run through, by stage
	@$(PY) -m pytest -q -s -p no:randomly tests/acceptance/test_data_paths.py

pictures: dev  ## every screen of the console as a picture, in .dossier/pictures/index.html; PART, LOOK, PAGE choose; README=1 those of the README
	@$(PY) -m tests.pictures $(PART:%=--part %) $(LOOK:%=--look %) $(PAGE:%=--page %) $(if $(README),--readme)

.PHONY: help run dev demo demo-reset check $(PARTS:%=check-%) test acceptance soak soak-nodes bench trace pictures
