"""Nagios Core 4, and what is compatible with it: two notification commands and a contact.

The fields are forms and not JSON: macros hold backslashes, and curl encodes whatever stands in them. They stand between
single quotes, which `illegal_macro_output_chars` and `illegal_object_name_chars` of nagios.cfg keep out of them, as
they are by default; see
https://assets.nagios.com/downloads/nagioscore/docs/nagioscore/4/en/configmain.html#illegal_macro_output_chars. What
people write into custom notifications is not cleaned by Nagios, and not sent.

A host or service is one alert for as long as it is not well: the start of its state would be another with every
change from warning to critical, so it is not sent. Flapping and downtimes are Nagios' own affairs and left out.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset

STATES = {
    "CRITICAL": "critical",
    "DOWN": "critical",
    "UNREACHABLE": "error",
    "WARNING": "warning",
    "UNKNOWN": "warning",
    "OK": "info",
    "UP": "info",
}
TYPES = {
    "PROBLEM": "firing",
    "RECOVERY": "resolved",
    "ACKNOWLEDGEMENT": "acknowledged",
    "CUSTOM": "ignored: a custom notification",
    "FLAPPINGSTART": "ignored: flapping",
    "FLAPPINGSTOP": "ignored: flapping",
    "FLAPPINGEND": "ignored: flapping",
    "FLAPPINGDISABLED": "ignored: flapping",
    "DOWNTIMESTART": "ignored: downtime",
    "DOWNTIMEEND": "ignored: downtime",
    "DOWNTIMECANCELLED": "ignored: downtime",
    "DOWNTIMEREMOVED": "ignored: downtime",
}
MAPPING = {
    "title": {"from": ["{service} on {host} is {state}", "{host} is {state}"]},
    "key": {"from": ["{host}!{service}", "{host}"]},
    "status": {"from": "$.type", "words": TYPES},
    "severity": {"from": "$.state", "words": STATES},
    "component": "host/{host}",
    "group": {"from": "$.service", "default": "host"},
    "description": {"from": ["{output}\n\nAcknowledged by {author}: {comment}", "$.output"]},
    "labels": {
        "host": "$.host",
        "address": "$.address",
        "service": "$.service",
        "state": "$.state",
        "host_groups": "$.groups",
    },
    "links": [{"href": "$.notes_url", "text": "Notes"}, {"href": "$.action_url", "text": "Actions"}],
}

_CURL = "/usr/bin/curl --silent --show-error --fail --max-time 5 --retry 3"


def _command(name: str, kind: str) -> str:
    fields = {
        "type": "$NOTIFICATIONTYPE$",
        "host": "$HOSTNAME$",
        "address": "$HOSTADDRESS$",
        "groups": "$HOSTGROUPNAMES$",
        **({"service": "$SERVICEDESC$"} if kind == "SERVICE" else {}),
        "state": f"${kind}STATE$",
        "output": f"${kind}OUTPUT$",
        "author": f"${kind}ACKAUTHOR$",
        "comment": f"${kind}ACKCOMMENT$",
        "notes_url": f"${kind}NOTESURL$",
        "action_url": f"${kind}ACTIONURL$",
    }
    lines = [
        _CURL,
        *(f"--data-urlencode '{field}={macro}'" for field, macro in fields.items()),
        f"'{ADDRESS}'",
    ]
    text = " \\\n        ".join(lines)
    return f"define command {{\n    command_name    {name}\n    command_line    {text}\n}}\n"


CONTACT = """\
define contact {
    contact_name                     dossier
    host_notifications_enabled       1
    service_notifications_enabled    1
    host_notification_period         24x7
    service_notification_period      24x7
    host_notification_options        d,u,r
    service_notification_options     w,u,c,r
    host_notification_commands       notify-host-by-dossier
    service_notification_commands    notify-service-by-dossier
}
"""

NAGIOS = Preset(
    name="nagios",
    title="Nagios",
    mapping=MAPPING,
    configuration=(
        (
            "conf.d/dossier.cfg; then add the contact `dossier` to your contact groups",
            "\n".join(
                (
                    _command("notify-service-by-dossier", "SERVICE"),
                    _command("notify-host-by-dossier", "HOST"),
                    CONTACT,
                )
            ),
        ),
    ),
)
