"""Checkmk: a notification script, which hands on what Checkmk puts into its environment.

https://docs.checkmk.com/latest/en/notifications.html#environment_variables: the variables begin with `NOTIFY_`; in a
payload they may stand with it or without. Flapping and downtimes are Checkmk's own affairs and left out.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset
from ingest.integrations.generic.presets.nagios import STATES, TYPES

FIELDS = (
    *(
        "WHAT",
        "NOTIFICATIONTYPE",
        "HOSTNAME",
        "HOSTALIAS",
        "HOSTADDRESS",
        "HOSTSTATE",
        "HOSTOUTPUT",
        "SERVICEDESC",
    ),
    *(
        "SERVICESTATE",
        "SERVICEOUTPUT",
        "LONGSERVICEOUTPUT",
        "NOTIFICATIONAUTHOR",
        "NOTIFICATIONCOMMENT",
        "OMD_SITE",
    ),
)
SCRIPT = "\n".join(
    (
        "#!/bin/bash",
        "# Dossier",
        "exec /usr/bin/curl --silent --show-error --fail --max-time 10 --retry 3 \\",
        *(
            f'    --data-urlencode "{name}=${name if name.startswith("OMD") else "NOTIFY_" + name}" \\'
            for name in FIELDS
        ),
        f"    '{ADDRESS}'\n",
    )
)


def _either(*templates: str) -> list[str]:
    """The templates, and below them the same with the names as in Checkmk's environment."""
    return [*templates, *(one.replace("{", "{NOTIFY_").replace("$.", "$.NOTIFY_") for one in templates)]


CHECKMK = Preset(
    "checkmk",
    "Checkmk",
    {
        "title": {
            "from": _either("{SERVICEDESC} on {HOSTNAME} is {SERVICESTATE}", "{HOSTNAME} is {HOSTSTATE}"),
        },
        "key": {"from": [*_either("{HOSTNAME}!{SERVICEDESC}"), *_either("$.HOSTNAME")]},
        "status": {
            "from": _either("$.NOTIFICATIONTYPE"),
            "words": {**TYPES, "*": "ignored: no change of the host or service"},
        },
        "severity": {
            "from": [*_either("{SERVICEDESC} is {SERVICESTATE}"), *_either("$.HOSTSTATE")],
            "find": r"(\S+)$",
            "words": {**STATES, "CRIT": "critical", "WARN": "warning", "UNKN": "warning", "UNREACH": "error"},
            "default": "warning",
        },
        "component": {"from": _either("host/{HOSTNAME}"), "default": ""},
        "group": {"from": _either("$.SERVICEDESC"), "default": "host"},
        "description": {
            "from": [
                *_either(
                    "{SERVICEOUTPUT}\n\nAcknowledged by {NOTIFICATIONAUTHOR}: {NOTIFICATIONCOMMENT}",
                    "{SERVICEOUTPUT}\n\n{LONGSERVICEOUTPUT}",
                ),
                *_either("$.SERVICEOUTPUT", "$.HOSTOUTPUT"),
            ],
            "default": "",
        },
        "labels": {
            "host": {"from": _either("$.HOSTNAME")},
            "address": {"from": _either("$.HOSTADDRESS")},
            "service": {"from": _either("$.SERVICEDESC")},
            "state": {"from": _either("$.SERVICESTATE", "$.HOSTSTATE")},
            "site": "$.OMD_SITE",
        },
    },
    (
        (
            "~/local/share/check_mk/notifications/dossier in the site, executable; then a notification rule with the"
            " method Dossier",
            SCRIPT,
        ),
    ),
    (("$.NOTIFICATIONTYPE", "$.HOSTNAME"), ("$.NOTIFY_NOTIFICATIONTYPE", "$.NOTIFY_HOSTNAME")),
)
