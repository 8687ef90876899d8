"""The heads of the messages of an Arrow stream, looked at before any of its buffers is unfolded."""

from __future__ import annotations

import struct

import pyarrow as pa

from ingest.telemetry.errors import InvalidBodyError


# The metadata of an IPC message is a flatbuffer (format/Message.fbs of Arrow): Message.header is field 2, its
# type field 1 (2 dictionary batch, 3 record batch); RecordBatch.compression is field 3, DictionaryBatch.data
# field 1.
def refuse_compressed(body: bytes) -> None:
    """Raises InvalidBodyError for a stream whose buffers are compressed one by one. Only looks at the messages'
    heads."""
    with pa.BufferReader(body) as source:
        for message in pa.ipc.MessageReader.open_stream(source):
            head = message.metadata.to_pybytes()
            try:
                compressed = _is_compressed(head)
            except (struct.error, IndexError) as error:
                raise InvalidBodyError("not a good Arrow IPC stream: broken message") from error
            if compressed:
                raise InvalidBodyError(
                    "the stream's buffers are compressed: send it plain, with Content-Encoding: zstd"
                )


def _is_compressed(head: bytes) -> bool:
    message = _offset(head, 0)
    type_place = _field(head, message, 1)
    batch = _child(head, message, 2)
    if not type_place or batch is None:
        return False
    if head[type_place] == 2:
        batch = _child(head, batch, 1)
        return batch is not None and _field(head, batch, 3) != 0
    return head[type_place] == 3 and _field(head, batch, 3) != 0


def _offset(head: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", head, place)[0])


def _field(head: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table stands, 0 if it is absent."""
    vtable = table - int(struct.unpack_from("<i", head, table)[0])
    if vtable < 0:
        raise IndexError(vtable)
    (size,) = struct.unpack_from("<H", head, vtable)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", head, vtable + 4 + 2 * number)
    return table + int(offset) if offset else 0


def _child(head: bytes, table: int, number: int) -> int | None:
    place = _field(head, table, number)
    return _offset(head, place) if place else None
