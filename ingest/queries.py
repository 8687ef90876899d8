"""What the floors above may ask of ingest."""

from ingest.log.follow import Place as FollowerPlace
from ingest.log.follow import places as follower_places
from ingest.log.registry import registered as registered_event_types
from ingest.log.store import head, position_at, read_all, read_stream, watermark, watermark_age
from ingest.log.types import Body, Context, Event, Head, Json, NewEvent, Position, WrongExpectedVersion
from ingest.log.wake import CHANNEL as LOG_CHANNEL
from ingest.telemetry.kinds import KINDS as TELEMETRY_KINDS

__all__ = [
    "LOG_CHANNEL",
    "TELEMETRY_KINDS",
    "Body",
    "Context",
    "Event",
    "FollowerPlace",
    "Head",
    "Json",
    "NewEvent",
    "Position",
    "WrongExpectedVersion",
    "follower_places",
    "head",
    "position_at",
    "read_all",
    "read_stream",
    "registered_event_types",
    "watermark",
    "watermark_age",
]
