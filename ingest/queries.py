"""Queries of the layers above about ingest."""

from ingest.alerts.changes import ENDPOINT as CHANGES_ENDPOINT
from ingest.alerts.changes import ReportedChange, UnknownChangeError, changes
from ingest.alerts.changes import change as reported_change
from ingest.alerts.changes import names_of as names_of_changed
from ingest.alerts.deliveries import Delivered as AlertDelivery
from ingest.alerts.deliveries import Latest as LatestDelivery
from ingest.alerts.deliveries import WithoutAlert
from ingest.alerts.deliveries import delivered as alert_delivery
from ingest.alerts.deliveries import latest as latest_deliveries
from ingest.alerts.deliveries import left_out as left_out_deliveries
from ingest.alerts.deliveries import unread as unread_deliveries
from ingest.alerts.rows import Brief as AlertBrief
from ingest.alerts.rows import CurrentAlert as Alert
from ingest.alerts.rows import (
    alerts,
    alerts_at,
    firing_alerts,
    firing_at,
    firing_on,
    labels_carried,
    open_alerts,
)
from ingest.alerts.rows import briefs as alert_briefs
from ingest.alerts.rows import components_of as alert_components
from ingest.db.database import is_wrong as clock_is_wrong
from ingest.db.database import now as now_utc
from ingest.db.database import skew as clock_skew
from ingest.db.server_watch import answers as database_answers
from ingest.log.append import CHANNEL as LOG_CHANNEL
from ingest.log.configuration_events import changes_of_receipt, configured, newest_configured
from ingest.log.move import status as cold_log
from ingest.log.move import unreadable as unreadable_log
from ingest.log.parts import empty as empty_log_parts
from ingest.log.read import Place as FollowerPlace
from ingest.log.read import begun as begun_streams
from ingest.log.read import (
    head,
    heads,
    moment_of,
    position_at,
    read_all,
    read_stream,
    read_streams,
    read_versions,
    watermark,
    watermark_age,
)
from ingest.log.read import lags as follower_lags
from ingest.log.read import places as follower_places
from ingest.log.seals import UncoveredEventError, newest_seal, unsealed_since
from ingest.log.seals import prove as prove_event
from ingest.log.types import (
    Body,
    Context,
    Event,
    Head,
    Json,
    NewEvent,
    Position,
    StreamVersionError,
    ordered_id,
    parse_rfc3339,
    rfc3339,
)
from ingest.log.types import registered as registered_event_types
from ingest.telemetry.cold.status import ColdStatus as ColdTelemetry
from ingest.telemetry.cold.status import cold_status as cold_telemetry
from ingest.telemetry.cold.status import unreadable as unreadable_telemetry
from ingest.telemetry.kinds import KINDS as TELEMETRY_KINDS
from ingest.telemetry.kinds.declare import is_component, natural
from ingest.telemetry.store.receipts import StoredRows, TelemetryReceipt
from ingest.telemetry.store.receipts import receipt as telemetry_receipt
from ingest.telemetry.store.sharding import problems as sharding_problems
from ingest.telemetry.store.tables import overdue as overdue_telemetry
from ingest.telemetry.store.tables import whole_for as telemetry_whole_for
from ingest.telemetry.windows.late_rows import LateRows, late_rows
from ingest.telemetry.windows.outages import Outage, outages_of
from ingest.telemetry.windows.pair_grid import Axis as GridAxis
from ingest.telemetry.windows.pair_grid import Crossing, PathSums, cross, default_axes, finer
from ingest.telemetry.windows.pair_grid import KindOnPaths as KindOnPaths
from ingest.telemetry.windows.pair_grid import Steps as PathSteps
from ingest.telemetry.windows.part_rows import (
    BenchmarkResult,
    ProbedPath,
    benchmark_results,
    other_attempts,
    part_attempts,
    probed_paths,
    probes_between,
)
from ingest.telemetry.windows.path_sums import PathSumsTimeoutError as PathSumsTooSlow
from ingest.telemetry.windows.path_sums import Source as PathSource
from ingest.telemetry.windows.path_sums import path_clock, path_rates, path_source, path_sums
from ingest.telemetry.windows.sql import DataClock, data_clock, read_window, regions
from ingest.telemetry.windows.sums import dumps as dump_sums
from ingest.telemetry.windows.sums import loads as load_sums
from ingest.topology.read import Component, Topology, component, placed_names, topology_at
from ingest.topology.slots import slots_of
from ingest.topology.snapshot import Snapshot as TopologySnapshot
from ingest.topology.snapshot import topology_snapshot
from ingest.topology.upstream import Dependencies, dependencies_of

__all__ = [
    "CHANGES_ENDPOINT",
    "LOG_CHANNEL",
    "TELEMETRY_KINDS",
    "Alert",
    "AlertBrief",
    "AlertDelivery",
    "BenchmarkResult",
    "Body",
    "ColdTelemetry",
    "Component",
    "Context",
    "Crossing",
    "DataClock",
    "Dependencies",
    "Event",
    "FollowerPlace",
    "GridAxis",
    "Head",
    "Json",
    "KindOnPaths",
    "LateRows",
    "LatestDelivery",
    "NewEvent",
    "Outage",
    "PathSource",
    "PathSteps",
    "PathSums",
    "PathSumsTooSlow",
    "Position",
    "ProbedPath",
    "ReportedChange",
    "StoredRows",
    "StreamVersionError",
    "TelemetryReceipt",
    "Topology",
    "TopologySnapshot",
    "UncoveredEventError",
    "UnknownChangeError",
    "WithoutAlert",
    "alert_briefs",
    "alert_components",
    "alert_delivery",
    "alerts",
    "alerts_at",
    "begun_streams",
    "benchmark_results",
    "changes",
    "changes_of_receipt",
    "clock_is_wrong",
    "clock_skew",
    "cold_log",
    "cold_telemetry",
    "component",
    "configured",
    "cross",
    "data_clock",
    "database_answers",
    "default_axes",
    "dependencies_of",
    "dump_sums",
    "empty_log_parts",
    "finer",
    "firing_alerts",
    "firing_at",
    "firing_on",
    "follower_lags",
    "follower_places",
    "head",
    "heads",
    "is_component",
    "labels_carried",
    "late_rows",
    "latest_deliveries",
    "left_out_deliveries",
    "load_sums",
    "moment_of",
    "names_of_changed",
    "natural",
    "newest_configured",
    "newest_seal",
    "now_utc",
    "open_alerts",
    "ordered_id",
    "other_attempts",
    "outages_of",
    "overdue_telemetry",
    "parse_rfc3339",
    "part_attempts",
    "path_clock",
    "path_rates",
    "path_source",
    "path_sums",
    "placed_names",
    "position_at",
    "probed_paths",
    "probes_between",
    "prove_event",
    "read_all",
    "read_stream",
    "read_streams",
    "read_versions",
    "read_window",
    "regions",
    "registered_event_types",
    "reported_change",
    "rfc3339",
    "sharding_problems",
    "slots_of",
    "telemetry_receipt",
    "telemetry_whole_for",
    "topology_at",
    "topology_snapshot",
    "unread_deliveries",
    "unreadable_log",
    "unreadable_telemetry",
    "unsealed_since",
    "watermark",
    "watermark_age",
]
