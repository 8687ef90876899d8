"""What the daily report says in the log: `report.produced`, in stream `report/<day>`."""

from ingest.commands import EventType, register_event_type

PRODUCED = register_event_type(EventType("report.produced"))
