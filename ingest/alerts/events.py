"""The event types of alerts and changes.

`alert.reported`, in stream `alert/<id>`, one stream for each key of each integration: {alert, integration, endpoint,
key, change, status, title, severity, group, component, description, labels, links, images, starts_at, expires_at,
notes, annotations, fired, receipt, sha256}. `annotations` are as sent, null where the sender has none of the kind;
events from before there were any lack the key. `change` says what is new about the alert: `fired`, `acknowledged`,
`resolved`, `expired` (its sender fell silent), `settled` (a person said so), `severity` or `component`. `fired` is how
often it began to fire in the last hour, this time included; `receipt` names the delivery and `sha256` its payload,
both null where none did it.

`change.reported`, in stream `change/<id>`: {change, integration, endpoint, summary, source, component, at, details,
links, notes, receipt, sha256}: something was changed, at a time that its sender said (`at`, else null). It opens no
incident.

`change.validated`, in the same stream: {change, verdict, classes, classes_violated, groups, violations_total,
violations, notes, specification, specification_sha256, before_sha256, after_sha256}: whether forwarding before and
after the change keeps to its specification.
"""

from ingest.log.types import EventType, register

REPORTED = register(EventType("alert.reported"))
CHANGED = register(EventType("change.reported"))
VALIDATED = register(EventType("change.validated"))
