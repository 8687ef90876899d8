"""Icinga 2: two notification commands, a user and the rules that apply them.

The fields are those of Nagios, so the mapping is, too. Icinga starts curl without a shell, and macros
(https://icinga.com/docs/icinga-2/latest/doc/03-monitoring-basics/#runtime-macros) may hold anything.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.index import ADDRESS, Preset
from ingest.integrations.generic.presets.nagios import MAPPING

_START = ("/usr/bin/curl", "--silent", "--show-error", "--fail", "--max-time", "5", "--retry", "3")


def _command(name: str, kind: str) -> str:
    fields = {
        "type": "$notification.type$",
        "host": "$host.name$",
        "address": "$host.address$",
        **({"service": "$service.name$"} if kind == "service" else {}),
        "state": f"${kind}.state$",
        "output": f"${kind}.output$",
        "author": "$notification.author$",
        "comment": "$notification.comment$",
        "notes_url": f"${kind}.notes_url$",
        "action_url": f"${kind}.action_url$",
    }
    start = ", ".join(f'"{word}"' for word in _START)
    lines = [
        start,
        *(f'"--data-urlencode", "{field}={macro}"' for field, macro in fields.items()),
        f'"{ADDRESS}"',
    ]
    text = ",\n    ".join(lines)
    return f'object NotificationCommand "{name}" {{\n  command = [\n    {text}\n  ]\n}}\n'


def _rule(kind: str, states: str) -> str:
    return f"""\
apply Notification "dossier" to {kind} {{
  command = "dossier-{kind.lower()}"
  users = [ "dossier" ]
  types = [ Problem, Acknowledgement, Recovery ]
  states = [ {states} ]
  assign where true
}}
"""


ICINGA = Preset(
    name="icinga",
    title="Icinga 2",
    mapping=MAPPING,
    configuration=(
        (
            "conf.d/dossier.conf",
            "\n".join(
                (
                    _command("dossier-service", "service"),
                    _command("dossier-host", "host"),
                    'object User "dossier" {\n}\n',
                    _rule("Service", "OK, Warning, Critical, Unknown"),
                    _rule("Host", "Up, Down"),
                )
            ),
        ),
    ),
)
