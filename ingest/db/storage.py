"""The directory or the bucket of Parquet files (DOSSIER_TELEMETRY_COLD), and DuckDB over them. Loads the libraries only
when they are used."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    import pyarrow.fs as fs

DUCKDB: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # Without these a process keeps what a query needed, a hundred megabytes and more, until the next one.
    "allocator_background_threads": True,
    "threads": 2,
    "temp_directory": tempfile.gettempdir(),
}
"""Configuration of an empty database over files."""


class ColdStorageError(Exception):
    """The directory or bucket of old telemetry and old parts of the log cannot be used: what, where, why."""


def storage() -> tuple[fs.FileSystem, str]:
    """Storage of files: a file system, and the path of the directory or the bucket and prefix in it."""
    import pyarrow as pa
    import pyarrow.fs as fs

    where = settings.TELEMETRY_COLD
    if not where:
        raise ColdStorageError(
            "DOSSIER_TELEMETRY_COLD is not set, which says where files of old telemetry are"
        )
    try:
        if "://" in where:
            system, root = fs.FileSystem.from_uri(where)
            return system, root
        return fs.LocalFileSystem(), str(Path(where).absolute())
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ColdStorageError(f"DOSSIER_TELEMETRY_COLD {where} cannot be opened: {error}") from error


class Output:
    """A new file. Its bytes are on disk, or in the bucket, when `close` returns."""

    def __init__(self, name: str) -> None:
        import pyarrow.fs as fs

        self.system, root = storage()
        self.path = f"{root}/{name}"
        self.is_local = isinstance(self.system, fs.LocalFileSystem)
        if self.is_local:
            self.system.create_dir(self.path.rpartition("/")[0], recursive=True)
        self.stream: Any = self.system.open_output_stream(self.path)

    def close(self) -> None:
        self.stream.close()
        for path in (self.path, self.path.rpartition("/")[0]) if self.is_local else ():
            opened = os.open(path, os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)


def delete(name: str) -> None:
    """Delete a file, if it is there."""
    import pyarrow.fs as fs

    system, root = storage()
    if system.get_file_info(f"{root}/{name}").type != fs.FileType.NotFound:
        system.delete_file(f"{root}/{name}")


def unreadable_file(files: Sequence[tuple[str, int]]) -> str | None:
    """Reason why one of these files, with so many rows each, cannot be read on this machine."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, rows in files:
        try:
            system, root = storage()
            with system.open_input_file(f"{root}/{name}") as opened:
                found = pq.ParquetFile(opened).metadata.num_rows
        except (ColdStorageError, OSError, pa.ArrowException) as error:
            return f"{name} cannot be read: {error}"
        if found != rows:
            return f"{name} holds {found} rows instead of {rows}"
    return None


def duckdb_source(session: duckdb.DuckDBPyConnection, names: Sequence[str], schema: pa.Schema) -> str:
    """Name of the files in a query."""
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    system, root = storage()
    paths = [f"{root}/{name}" for name in names]
    if isinstance(system, fs.LocalFileSystem):
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        return f"read_parquet([{listed}])"
    # DuckDB reads buckets by an extension that is not in its package; Arrow reads them with its own.
    session.register("files", ds.dataset(paths, schema, format="parquet", filesystem=system))
    return "files"
