"""The log's own event types.

`log.sealed` is described in `ingest.log.seals`. `configuration.changed`, in stream `configuration/<kind>/<key>`: {kind,
key, before, after}: what configures Dossier as it was and as it is; null before is a creation, null after a removal.
"""

from ingest.log.types import EventType, register

SEALED = register(EventType("log.sealed"))
CONFIGURED = register(EventType("configuration.changed"))
