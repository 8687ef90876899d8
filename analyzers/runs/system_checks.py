"""The system check of analyzers: one warning for each that cannot be used.

A warning and not an error: Django refuses to run commands such as `migrate` after an error, and one bad plugin stops
nothing but itself. `manage.py check` fails on warnings.
"""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Warning, register

from analyzers import registry


@register("analyzers")
def check_analyzers(**_: Any) -> list[CheckMessage]:
    """A warning for each installed analyzer that cannot be used."""
    return [
        Warning(f"analyzer plugin {one.plugin}: {one.reason}.", hint=f"{one.cure}.", id="analyzers.W001")
        for one in registry.problems()
    ]
