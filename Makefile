# The commands of the README. `make help` lists them.
PY := .venv/bin/python
WORKERS ?= 2
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run:  ## install what running needs
	@deploy/bootstrap.sh requirements.lock

dev:  ## install what working on Dossier needs
	@deploy/bootstrap.sh requirements-dev.lock

demo: run  ## start everything, feed the demo world, print where to look; Ctrl-C stops
	@exec $(PY) manage.py demo

demo-reset: run  ## forget the demo's data
	@$(PY) manage.py demo --reset

check: dev  ## format, lint, types, import contracts, migrations, unit tests
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@.venv/bin/lint-imports
	@$(PY) manage.py check_migrations
	@$(PY) -m mypy
	@$(PY) -m pytest tests/unit tests/architecture -q -n $(WORKERS) --dist loadfile

test: dev  ## everything: unit, integration, acceptance, browser, architecture
	@$(PY) -m pytest -q -n $(WORKERS) --dist loadfile

soak: dev  ## the long ones: storms, kills, a million rows
	@$(PY) -m pytest -q -m soak

bench: dev  ## the benchmark suite; writes a table and bench.json
	@$(PY) -m tests.benchmarks

.PHONY: help run dev demo demo-reset check test soak bench
