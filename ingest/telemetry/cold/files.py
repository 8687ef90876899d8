"""Parquet files of rows, in a directory or a bucket: written, and read again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ingest.db.storage import Output, storage

Bits = NDArray[np.uint64]
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class Digest:
    """Number of rows, and a sum over all their bits, whatever their order."""

    rows: int = 0
    bits: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        mixed = np.zeros(batch.num_rows, np.uint64)
        for place, column in enumerate(batch.columns):
            if pa.types.is_list(column.type):
                # Each row's elements, weighted by their place in the list.
                ends = np.asarray(column.offsets, np.int64)
                sizes = np.diff(ends)
                flat = np.asarray(column.flatten(), np.float64).view(np.uint64)
                within = np.arange(len(flat)) - np.repeat(ends[:-1] - ends[0], sizes) + 1
                each = flat * (2 * within.astype(np.uint64) + np.uint64(1))
                bits = np.zeros(batch.num_rows, np.uint64)
                np.add.at(bits, np.repeat(np.arange(batch.num_rows), sizes), each)
                bits += sizes.astype(np.uint64)
            else:
                bits = _bits(column)
            mixed = (mixed ^ bits) * (_MIX + np.uint64(2 * place))
            mixed ^= mixed >> np.uint64(29)
        self.rows += batch.num_rows
        self.bits = (self.bits + int(mixed.sum(dtype=np.uint64))) % 2**64


def _bits(column: pa.Array) -> Bits:
    if pa.types.is_fixed_size_binary(column.type):
        halves = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)
        own = halves[column.offset : column.offset + len(column)]
        return own[:, 0] * np.uint64(3) + own[:, 1]
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype == np.float64:
        return np.asarray(values.view(np.uint64))
    return np.asarray(values.astype(np.int64).view(np.uint64))


class Writer:
    """A file in the making. Rows are on disk, or in the bucket, when `close` returns."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self.output = Output(name)
        self.digest = Digest()
        deltas = [field.name for field in schema if pa.types.is_integer(field.type)]
        self.parquet = pq.ParquetWriter(
            self.output.stream,
            schema,
            compression="zstd",
            use_dictionary=[field.name for field in schema if field.name not in deltas],
            column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
        )

    def add(self, batch: pa.RecordBatch) -> None:
        self.digest.add(batch)
        self.parquet.write_batch(batch)

    def close(self) -> None:
        self.parquet.close()
        self.output.close()


def read_again(name: str) -> tuple[Digest, int]:
    """Digest of a file, read from its storage, and its size in bytes."""
    system, root = storage()
    digest = Digest()
    with system.open_input_file(f"{root}/{name}") as opened:
        size = opened.size()
        for batch in pq.ParquetFile(opened).iter_batches(batch_size=2**17):
            digest.add(batch)
    return digest, size
