"""Makes telemetry rows of files in other formats: `spans` into `path_outcome` or `span`, `logs` into `log_count`,
`metrics` into `metric`, `superbench` into `benchmark`, `flight-recorder`, `nccl-inspector` and `nccl-ras` into
`collective`, `profiler-trace` into `function_profile`, and `topology` into `topology`.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import CommandParser

from analyzers.runs.management.line_command import CommandInputError, LineCommand, progress
from ingest.integrations import flight_recorder, metric_columns, nccl, spans, superbench
from ingest.integrations.logs import lines
from ingest.integrations.logs.templates import Record, Templates, count_rows
from ingest.integrations.span_rows import put_before, span_rows

FORMATS = (
    "spans",
    "logs",
    "metrics",
    "superbench",
    "flight-recorder",
    "nccl-inspector",
    "nccl-ras",
    "profiler-trace",
    "topology",
)
SOURCES = ("backstage", "kubernetes", "netbox", "lldp")
"""Systems whose exports are read as a topology."""


class Command(LineCommand):
    help = (
        "Make telemetry rows (NDJSON) of files in other formats. spans: path_outcome rows of traces, one row a "
        "trace; it failed if it had an error or its root was slower than the normal p99 of its operation; or, with "
        "--to span, the spans themselves, those of --normal moved to just before them. "
        "logs: log_count rows, records counted by template, those of --normal moved in the same way. "
        "metrics: metric rows of a CSV with a column of times and columns SERVICE_METRIC, as RCAEval has them, or with "
        "lines microservice, metric and statistic, as PetShop has them; those of --normal moved in the same way. "
        "superbench: benchmark rows of results-summary.jsonl, or of a node's monitor.jsonl. "
        "flight-recorder: collective rows of PyTorch's dumps as JSON, one file a rank, its name ends in the rank. "
        "nccl-inspector: collective rows of the Inspector's lines, one file a process. "
        "nccl-ras: collective rows of the answer of ncclras -f json. "
        "profiler-trace: function_profile rows of Chrome traces of the PyTorch profiler, one file a worker. "
        "topology: topology rows of a Backstage catalog, of kubectl get -o json, of NetBox's API, or of "
        "lldpcli show neighbors -f json, one file a machine. "
        "Examples: manage.py convert spans --normal calm.csv.gz --input bad.csv.gz --out mine.ndjson; "
        "manage.py convert superbench results-summary.jsonl --time 2026-03-01T12:00:00Z --out benchmark.ndjson"
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Django's parser, which takes files after options too: argparse looks for them beside the format only."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)

        def parse_args(args: Sequence[str] | None = None, namespace: Namespace | None = None) -> Namespace:
            options, rest = parser.parse_known_args(args, namespace)
            if unknown := [one for one in rest if one.startswith("-")]:
                parser.error(f"unrecognized arguments: {' '.join(unknown)}")
            options.files += rest
            return options

        parser.parse_args = parse_args  # type: ignore[assignment]
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("format", choices=FORMATS, help="kind of the files")
        parser.add_argument("files", nargs="*", metavar="FILE", help="files to convert, as with --input")
        parser.add_argument(
            "--normal",
            action="append",
            default=[],
            metavar="FILE",
            help="spans, logs or metrics of fault-free time (.csv, .csv.gz)",
        )
        parser.add_argument(
            "--input", action="append", default=[], metavar="FILE", help="a file to convert; may be repeated"
        )
        parser.add_argument(
            "--to",
            choices=["path_outcome", "span"],
            default="path_outcome",
            help="spans: the kind of the rows",
        )
        parser.add_argument("--out", metavar="FILE", help="output file (default: standard output)")
        parser.add_argument(
            "--operation",
            choices=["entry", "root"],
            default="entry",
            help="compare traces by the operation of the root, or also by the first on another instance",
        )
        parser.add_argument(
            "--ending",
            metavar="TIME",
            help="spans, logs, metrics: shift all times so that the last row is at TIME (RFC 3339, or now)",
        )
        parser.add_argument(
            "--time",
            metavar="TIME",
            help="superbench, nccl-ras: time of the results (RFC 3339, or now; default: modification time of FILE, or"
            " the time in the answer as UTC); topology: since when it is so (default: now)",
        )
        parser.add_argument("--job", default="job", metavar="NAME", help="training job of the rows")
        parser.add_argument(
            "--worker",
            metavar="NAME",
            help="profiler-trace: the worker (default: worker/RANK, the rank of the trace)",
        )
        parser.add_argument(
            "--role", default="all", metavar="NAME", help="profiler-trace: role of the worker, such as pp0"
        )
        parser.add_argument(
            "--node",
            metavar="NAME",
            help="superbench: node of monitor.jsonl; lldp: machine of FILE (default: name of the file), or KIND/NAME",
        )
        parser.add_argument("--from", dest="source", choices=SOURCES, help="topology: system that wrote FILE")
        parser.add_argument("--sku", default="", metavar="NAME", help="superbench: SKU of the machine")

    def work(self, **options: Any) -> None:
        options["input"] = [*options["files"], *options["input"]]
        if not options["input"]:
            raise CommandInputError(
                f"--input FILE is missing: which {options['format']} files should be converted?"
            )
        convert = {
            "spans": self._spans,
            "logs": self._logs,
            "metrics": self._metrics,
            "superbench": self._superbench,
            "flight-recorder": self._flight_recorder,
            "nccl-inspector": self._nccl_inspector,
            "nccl-ras": self._nccl_ras,
            "profiler-trace": self._profiler_trace,
            "topology": self._topology,
        }
        convert[options["format"]](options)

    def _flight_recorder(self, options: dict[str, Any]) -> None:
        dumps = []
        for name in options["input"]:
            try:
                dumps.append(flight_recorder.read(name, _payload(name)))
            except flight_recorder.InvalidDumpError as error:
                raise CommandInputError(f"{name}: {error}") from error
        try:
            made = flight_recorder.convert(dumps, options["job"])
        except flight_recorder.InvalidDumpError as error:
            raise CommandInputError(str(error)) from error
        self._collectives(options, made.rows, made.notes)

    def _nccl_inspector(self, options: dict[str, Any]) -> None:
        try:
            made = nccl.inspector(((name, _payload(name)) for name in options["input"]), options["job"])
        except nccl.InvalidNcclError as error:
            raise CommandInputError(str(error)) from error
        self._collectives(options, made.rows, made.notes)

    def _nccl_ras(self, options: dict[str, Any]) -> None:
        at = _moment("--time", options["time"])
        rows: list[dict[str, Any]] = []
        notes: list[str] = []
        for name in options["input"]:
            try:
                made = nccl.ras(_payload(name), options["job"], at)
            except nccl.InvalidNcclError as error:
                raise CommandInputError(f"{name}: {error}") from error
            rows += made.rows
            notes += made.notes
        self._collectives(options, rows, notes)

    def _profiler_trace(self, options: dict[str, Any]) -> None:
        from ingest.integrations import profiler_trace  # loads numpy

        if options["worker"] and len(options["input"]) > 1:
            raise CommandInputError("--worker NAME: goes with one file; without it each trace names its rank")
        rows: list[dict[str, Any]] = []
        for name in options["input"]:
            try:
                made = profiler_trace.convert(
                    partial(_opened, name), options["job"], options["worker"] or "", options["role"]
                )
            except profiler_trace.InvalidTraceError as error:
                raise CommandInputError(f"{name}: {error}") from error
            rows += made.rows
            worker = made.rows[0]["worker"]
            self.note(f"{worker}: {len(made.rows)} functions of {made.events} kernels and calls")
            if made.left_out:
                self.note(f"{worker}: {made.left_out} functions with the smallest shares left out")
        _write(options["out"], rows)

    def _collectives(self, options: dict[str, Any], rows: list[dict[str, Any]], notes: list[str]) -> None:
        _write(options["out"], rows)
        ranks = len({row["rank"] for row in rows})
        self.note(f"{len(rows)} rows of {ranks} rank{'' if ranks == 1 else 's'}")
        for sentence in notes:
            self.note(sentence)

    def _topology(self, options: dict[str, Any]) -> None:
        from ingest.integrations.topology import (
            backstage,
            kubernetes,
            lldp,
            netbox,
        )  # Backstage's loads a YAML parser
        from ingest.integrations.topology.graph import Graph, InvalidTopologyError

        at = _moment("--time", options["time"]) or datetime.now(UTC)
        if options["source"] is None:
            raise CommandInputError(f"--from is missing; it must be one of {', '.join(SOURCES)}")
        if options["node"] and len(options["input"]) > 1:
            raise CommandInputError(
                "--node NAME: goes with one file; without it each file is named after its machine"
            )
        files = [(name, _payload(name)) for name in options["input"]]
        try:
            if options["source"] == "lldp":
                found = Graph()
                for name, body in files:
                    lldp.add(found, name, body, options["node"] or lldp.machine_of(name))
            else:
                read = {"backstage": backstage.graph, "kubernetes": kubernetes.graph, "netbox": netbox.graph}
                found = read[options["source"]](files)
            rows = found.rows(at)
        except InvalidTopologyError as error:
            raise CommandInputError(str(error)) from error
        _write(options["out"], rows)
        kinds = Counter(row["component"].partition("/")[0] for row in rows)
        self.note(
            f"{len(rows)} rows: {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}"
        )
        for sentence in found.notes:
            self.note(sentence)

    def _superbench(self, options: dict[str, Any]) -> None:
        at = _moment("--time", options["time"])
        rows: list[dict[str, Any]] = []
        for name in options["input"]:
            payload = _payload(name)
            try:
                rows += _benchmark_rows(name, payload, at, options["node"], options["sku"])
            except superbench.InvalidResultsError as error:
                raise CommandInputError(f"{name}: {error}") from error
        _write(options["out"], rows)
        nodes = len({row["node"] for row in rows})
        self.note(f"{len(rows)} rows of {nodes} node{'' if nodes == 1 else 's'}")

    def _spans(self, options: dict[str, Any]) -> None:
        if options["to"] == "span":
            self._span_rows(options)
            return
        if not options["normal"]:
            raise CommandInputError("--normal FILE is missing: fault-free spans are the baseline")
        ending = _moment("--ending", options["ending"])
        normal = spans.learn(_traces(options["normal"], spans.Holes()), options["operation"])
        holes = spans.Holes()
        judged = _traces(options["input"], holes)
        if not judged:
            raise CommandInputError(f"there is no trace with a root in {', '.join(options['input'])}")
        shift = timedelta(0) if ending is None else ending - spans.instant(judged[-1].root.start)
        rows = spans.path_outcomes(judged, normal, holes, shift)
        _write(options["out"], rows)
        self._report(rows, holes)

    def _span_rows(self, options: dict[str, Any]) -> None:
        ending = _moment("--ending", options["ending"])
        normal = [one for name in options["normal"] if (one := _parsed([name]))]
        found = _parsed(options["input"])
        if not found:
            raise CommandInputError(f"there is no span in {', '.join(options['input'])}")
        last = max(span.start for span in found)
        shift = timedelta(0) if ending is None else ending - spans.instant(last)
        rows = [
            row
            for stretch, move in zip(normal, _moves(normal, found), strict=True)
            for row in span_rows(stretch, shift + move)
        ]
        before = len(rows)
        rows += span_rows(found, shift)
        _write(options["out"], rows)
        self.note(f"{len(rows)} rows{_put_before(before)}")

    def _logs(self, options: dict[str, Any]) -> None:
        ending = _moment("--ending", options["ending"])
        normal = [one for name in options["normal"] if (one := _records([name])[0])]
        found, left_out = _records(options["input"])
        if not found:
            raise CommandInputError(f"there is no log record in {', '.join(options['input'])}")
        shift = timedelta(0) if ending is None else ending - spans.instant(max(one.time for one in found))
        templates, rows = Templates(), list[dict[str, Any]]()
        moves = put_before([[one.time for one in stretch] for stretch in normal], [one.time for one in found])
        for stretch, move in zip(normal, moves, strict=True):
            rows += count_rows(stretch, templates, shift + move)
        before = len(rows)
        rows += count_rows(found, templates, shift)
        _write(options["out"], rows)
        if left_out:
            self.note(f"{left_out} records without a time were left out")
        different = len({row["template"] for row in rows})
        self.note(f"{len(rows)} rows of {different} templates{_put_before(before)}")

    def _metrics(self, options: dict[str, Any]) -> None:
        ending = _moment("--ending", options["ending"])
        normal = [_columns(name) for name in options["normal"]]
        found = [_columns(name) for name in options["input"]]
        last = max(one.end for one in found)
        shift = timedelta(0) if ending is None else ending - last
        times = [one.times for one in normal]
        judged = [time for one in found for time in one.times]
        rows: list[dict[str, Any]] = []
        for one, move in zip(normal, put_before(times, judged), strict=True):
            rows += metric_columns.rows(one, shift + move)
        before = len(rows)
        for one in found:
            rows += metric_columns.rows(one, shift)
        _write(options["out"], rows)
        left_out = sorted({name for one in (*normal, *found) for name in one.left_out})
        if left_out:
            self.note(f"columns without a service left out: {', '.join(left_out[:5])}")
        services = len({row["labels"]["service"] for row in rows})
        self.note(f"{len(rows)} rows of {services} services{_put_before(before)}")

    def _report(self, rows: list[dict[str, Any]], holes: spans.Holes) -> None:
        slow = sum(row["failures"] for row in rows)
        self.note(f"{holes.spans} spans, {holes.traces} traces, {len(rows)} rows, {slow} of them failed")
        for sentence in holes.sentences():
            self.note(sentence)


def _benchmark_rows(
    name: str, payload: bytes, at: datetime | None, node: str | None, sku: str
) -> list[dict[str, Any]]:
    if superbench.is_monitor(payload):
        if node is None:
            raise CommandInputError(f"{name}: monitor samples of one node; add --node NAME")
        return superbench.monitor_rows(payload, node, sku)
    if at is None:  # the summary has no times: when the file was written is the nearest to the truth
        at = datetime.fromtimestamp(int(Path(name).stat().st_mtime), UTC)
    return superbench.benchmark_rows(superbench.parse_results(payload), at, sku)


def _traces(files: list[str], holes: spans.Holes) -> list[spans.Trace]:
    return spans.traces(_parsed(files), holes)


def _parsed(files: list[str]) -> list[spans.Span]:
    found: list[spans.Span] = []
    tell = progress("reading")
    for name in files:
        tell(name)
        try:
            found += spans.parse(_payload(name))
        except spans.InvalidSpansError as error:
            raise CommandInputError(f"{name}: {error}") from error
    tell("")
    return found


def _moves(normal: list[list[spans.Span]], found: list[spans.Span]) -> list[timedelta]:
    return put_before(
        [[span.start for span in stretch] for stretch in normal], [span.start for span in found]
    )


def _records(files: list[str]) -> tuple[list[Record], int]:
    """The records of all files, and how many were left out for want of a time."""
    found, left_out = list[Record](), 0
    tell = progress("reading")
    for name in files:
        tell(name)
        try:
            records, timeless = lines.parse(_payload(name))
        except lines.InvalidLogsError as error:
            raise CommandInputError(f"{name}: {error}") from error
        found += records
        left_out += timeless
    tell("")
    return found, left_out


def _put_before(rows: int) -> str:
    return f", {rows} of them of the fault-free time put before" if rows else ""


def _columns(name: str) -> metric_columns.Table:
    try:
        return metric_columns.parse(_payload(name))
    except metric_columns.InvalidColumnsError as error:
        raise CommandInputError(f"{name}: {error}") from error


def _payload(name: str) -> bytes:
    try:
        payload = Path(name).read_bytes()
    except OSError as error:
        raise CommandInputError(f"{name}: cannot be read: {error.strerror}") from error
    if not name.endswith(".gz"):
        return payload
    try:
        return gzip.decompress(payload)
    except (OSError, EOFError, zlib.error) as error:
        raise CommandInputError(f"{name}: is not a whole gzip file: {error}") from error


def _opened(name: str) -> IO[bytes]:
    try:
        return cast("IO[bytes]", gzip.open(name)) if name.endswith(".gz") else Path(name).open("rb")
    except OSError as error:
        raise CommandInputError(f"{name}: cannot be read: {error.strerror}") from error


def _write(name: str | None, rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    if name is None:
        sys.stdout.write(text)
        return
    try:
        Path(name).write_text(text)
    except OSError as error:
        raise CommandInputError(f"{name}: cannot be written: {error.strerror}") from error


def _moment(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    if text == "now":
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandInputError(
            f"{option} {text!r}: is not a time such as 2026-03-01T12:00:00Z, nor now"
        ) from error
    if moment.tzinfo is None:
        raise CommandInputError(f"{option} {text!r}: has no time zone")
    return moment
