"""Rows of Parquet and Arrow files. Imported where such a file is read: pyarrow takes a while to load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest.telemetry.decode.arrow import decode_batches, decode_stream
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.errors import InvalidBodyError
from ingest.telemetry.kinds import Kind


def read_parquet(kind: Kind, path: Path, region: str, bounds: Bounds) -> Rows:
    """The rows of a Parquet file. Raises InvalidBodyError, OSError."""
    with _readable(), pq.ParquetFile(path) as file:
        return decode_batches(kind, file.schema_arrow, file.iter_batches(), region, bounds)


def read_arrow(kind: Kind, path: Path, region: str, bounds: Bounds) -> Rows:
    """The rows of an Arrow file, or of a stream in a file. Raises InvalidBodyError, OSError."""
    body = path.read_bytes()
    if not body.startswith(b"ARROW1"):
        return decode_stream(kind, body, region, bounds)
    with _readable(), pa.ipc.open_file(pa.py_buffer(body)) as file:
        batches = (file.get_batch(i) for i in range(file.num_record_batches))
        return decode_batches(kind, file.schema, batches, region, bounds)


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise InvalidBodyError(f"cannot be read: {str(error).splitlines()[0][:200]}") from error
