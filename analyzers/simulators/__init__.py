"""Scenarios with known truth, by name; `manage.py simulate SCENARIO --seed N --out DIR` writes them."""

from analyzers.simulators.scenarios import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "Scenario"]
