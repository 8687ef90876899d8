"""Proxmox VE and Backup Server: a target of the type webhook, whose body is a template of ours.

https://pve.proxmox.com/pve-docs/chapter-notifications.html: `severity` is info, notice, warning, error or unknown, and
`fields` holds the type of the event, the host and the job. A job that is done well says so with `info`, which ends what
its failure opened.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset

BODY = """\
{
  "title": "{{ escape title }}",
  "message": "{{ escape message }}",
  "severity": "{{ severity }}",
  "timestamp": {{ timestamp }},
  "fields": {{ json fields }}
}
"""

PROXMOX = Preset(
    "proxmox",
    "Proxmox",
    {
        "title": "$.title",
        "key": {
            "from": [
                '{$.fields["type"]} {$.fields["hostname"]} {$.fields["job-id"]}',
                '{$.fields["type"]} {$.fields["hostname"]}',
                "$.title",
            ]
        },
        "status": {
            "from": "$.severity",
            "words": {"info": "resolved", "notice": "resolved", "*": "firing"},
        },
        "severity": {
            "from": "$.severity",
            "words": {
                "error": "error",
                "warning": "warning",
                "info": "info",
                "notice": "info",
                "*": "warning",
            },
        },
        "group": {"from": '$.fields["type"]', "default": ""},
        "component": {"from": "host/{fields.hostname}", "default": ""},
        "description": {"from": "$.message", "default": ""},
        "labels": {
            "host": "$.fields.hostname",
            "type": "$.fields.type",
            "job": '$.fields["job-id"]',
            "datastore": "$.fields.datastore",
        },
    },
    (
        (
            "Datacenter, Notifications: a webhook; method POST, header Content-Type: application/json, URL",
            f"{ADDRESS}\n",
        ),
        ("Its body", BODY),
    ),
    (("$.title", "$.severity", "$.fields.hostname"), ("$.title", "$.severity", "$.fields.type")),
)
