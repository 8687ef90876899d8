"""The mapping of the generic endpoint where an integration has none of its own: the names that senders commonly use."""

from __future__ import annotations

from ingest.integrations.generic.schema import mapping

_TITLES = ["$.title", "$.summary", "$.message", "$.subject", "$.name", "$.text", "$.content", "$.alertname"]
_STEADY = ["$.title", "$.summary", "$.name", "$.subject", "$.message", "$.text"]
"""The same, first what seldom has figures in it that change while the alert fires."""

DEFAULT = mapping(
    {
        "reads_titles": True,
        "title": {"from": _TITLES},
        "key": {"from": ["$.dedup_key", "$.key", "$.fingerprint", "$.alias", "$.id", *_STEADY]},
        "status": {
            "from": [
                *("$.status", "$.state", "$.action", "$.event_action", "$.alert_status", "$.alert_state"),
                *("$.alert_transition", "$.transition", "$.current_state", "$.new_state"),
            ],
            "default": "",
        },
        "severity": {"from": ["$.severity", "$.level", "$.priority"], "default": "warning"},
        "group": {"from": ["$.group", "$.class", "$.rule", "$.check", "$.alertname"], "default": ""},
        "description": {
            "from": ["$.description", "$.details", "$.output", "$.message", "$.body"],
            "default": "",
        },
        "component": {"from": ["$.component"], "default": ""},
        "labels": "$.labels",
    }
)
