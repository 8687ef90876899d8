"""Commands of the layers above on ingest."""

from datetime import datetime

from ingest import heartbeat
from ingest.alerts.changes import record_validation
from ingest.alerts.expire import expire_alerts as settle_alerts
from ingest.alerts.expire import expire_some as expire_alerts
from ingest.alerts.heartbeats import check as check_heartbeats
from ingest.db import lease
from ingest.db.database import Backoff, in_halves
from ingest.db.database import is_away as database_is_away
from ingest.db.database import is_lost as database_is_lost
from ingest.db.server_watch import watch as watch_database
from ingest.db.storage import ColdStorageError
from ingest.log.append import NewStream, StreamAppend, append, begin, extend, retrying
from ingest.log.configuration_events import record_configuration
from ingest.log.copies import rebuild_copies, register_copy
from ingest.log.leader import Leader
from ingest.log.move import move_old as move_old_log
from ingest.log.noted_seals import newest as newest_noted_seal
from ingest.log.noted_seals import note as note_seal
from ingest.log.noted_seals import text_of as text_of_seal
from ingest.log.parts import maintain as maintain_log_parts
from ingest.log.read import Follower, register_follower
from ingest.log.read import run_once as run_follower_once
from ingest.log.seals import seal as seal_log
from ingest.log.takeover import NAME as SESSION_NAME
from ingest.log.timestamps import REQUEST as TIMESTAMP_REQUEST
from ingest.log.timestamps import InvalidTimestampError
from ingest.log.timestamps import authorities as timestamp_authorities
from ingest.log.timestamps import check as check_timestamp
from ingest.log.timestamps import request as request_timestamp
from ingest.log.types import EventType, UnrecordableEventError
from ingest.log.types import register as register_event_type
from ingest.log.verify import LogIntegrityError
from ingest.log.verify import expect as expect_seal
from ingest.telemetry.errors import InvalidBodyError as InvalidTelemetryError
from ingest.telemetry.errors import InvalidRowsError as InvalidTelemetryRowsError
from ingest.telemetry.record import record_rows as record_telemetry
from ingest.telemetry.store.tables import maintain as maintain_partitions

__all__ = [
    "SESSION_NAME",
    "TIMESTAMP_REQUEST",
    "Backoff",
    "ColdStorageError",
    "EventType",
    "Follower",
    "InvalidTelemetryError",
    "InvalidTelemetryRowsError",
    "InvalidTimestampError",
    "Leader",
    "LogIntegrityError",
    "NewStream",
    "StreamAppend",
    "UnrecordableEventError",
    "append",
    "begin",
    "check_heartbeats",
    "check_timestamp",
    "database_is_away",
    "database_is_lost",
    "expect_seal",
    "expire_alerts",
    "extend",
    "heartbeat",
    "in_halves",
    "lease",
    "maintain_log_parts",
    "maintain_partitions",
    "move_old_log",
    "move_old_telemetry",
    "newest_noted_seal",
    "note_seal",
    "rebuild_copies",
    "record_configuration",
    "record_telemetry",
    "record_validation",
    "register_copy",
    "register_event_type",
    "register_follower",
    "request_timestamp",
    "retrying",
    "run_follower_once",
    "seal_log",
    "settle_alerts",
    "text_of_seal",
    "timestamp_authorities",
    "watch_database",
]


def move_old_telemetry(now: datetime) -> None:
    """Move partitions that are old enough into files. Raises ColdStorageError."""
    from ingest.telemetry.cold.move import move_old  # brings pyarrow

    move_old(now)
