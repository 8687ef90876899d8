"""The event type of telemetry.

`telemetry.received`, in stream `receipt/<id>`, one event for each region that the body held rows of: {kind,
region, rows, bytes, sha256, first, last, key}. `bytes` is the size of the whole body as it was sent, `sha256`
that of what it was after decompression; `first` and `last` are the earliest and the latest `time` among the
rows, RFC 3339.
"""

from ingest.log.types import EventType, register

RECEIVED = register(EventType("telemetry.received"))
