"""Arrow record batches to rows: an IPC stream through the endpoint, a Parquet or Arrow file offline.

A sender's buffers are not to be trusted: the schema is looked at before any batch is read, every batch is
validated in full before a value is touched, and compressed buffers, which could unfold without limit, are
refused in a stream.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ingest.telemetry.decode.builder import (
    NONE_KNOWN,
    Assembly,
    KnownTexts,
    Moment,
    Part,
    canonical_json,
    from_nanoseconds,
    times,
)
from ingest.telemetry.decode.columns import Bounds, Codes, Known, Numbers, Rows
from ingest.telemetry.errors import InvalidBodyError
from ingest.telemetry.kinds import Field, Kind
from ingest.telemetry.messages import printable

PER_MICROSECOND = {"s": 1_000_000, "ms": 1000, "us": 1}


def decode_stream(
    kind: Kind, body: bytes, region: str, bounds: Bounds, known: KnownTexts = NONE_KNOWN
) -> Rows:
    """Rows of an Arrow IPC stream. Raises InvalidRowsError, InvalidBodyError, UnknownTextError."""
    assembly = Assembly(kind, region, known)
    try:
        refuse_compressed(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            _add_batches(assembly, stream.schema, stream)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidBodyError(f"not a good Arrow IPC stream: {str(error)[:200].rstrip('.')}") from error
    return assembly.rows(bounds)


def decode_batches(
    kind: Kind, schema: pa.Schema, batches: Iterable[pa.RecordBatch], region: str, bounds: Bounds
) -> Rows:
    """Rows of the record batches of a file. Raises InvalidRowsError, InvalidBodyError."""
    assembly = Assembly(kind, region)
    _add_batches(assembly, schema, batches)
    return assembly.rows(bounds)


def _add_batches(assembly: Assembly, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    _check_schema(assembly, schema)
    if assembly.bad:
        return
    first = 1
    for batch in batches:
        _refuse_invalid(assembly, batch, first)
        if assembly.bad:
            return
        numbers = np.arange(first, first + batch.num_rows)
        found = len(assembly.bad)
        columns = {}
        for field in assembly.kind.all_fields:
            place = schema.get_field_index(field.name)
            array = batch.column(place) if place >= 0 else None
            columns[field.name] = _column(assembly, field, array, batch.num_rows, first)
        if len(assembly.bad) == found:
            assembly.add_columns(columns, numbers)
        if assembly.full:
            return
        first += batch.num_rows


def _refuse_invalid(assembly: Assembly, batch: pa.RecordBatch, first: int) -> None:
    """Look at every buffer of the batch; of a column that is not what it says, the first bad row is named."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            good, bad = 0, batch.num_rows + 1  # so many rows are right, so many are not
            while bad - good > 1:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if _is_valid(column.slice(0, middle)) else (good, middle)
            if bad <= batch.num_rows:
                assembly.refuse(first + good, name, "is not valid UTF-8, or its buffers are broken")
        if not assembly.bad:
            raise


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _check_schema(assembly: Assembly, schema: pa.Schema) -> None:
    kind = assembly.kind
    for name in schema.names:
        if not kind.has(name):
            assembly.refuse(1, name[:100], f"is not a field of {kind.name}")
    for field in kind.all_fields:
        count = schema.names.count(field.name)
        if count > 1:
            assembly.refuse(1, field.name, "is given twice")
        elif count == 0 and not field.optional:
            assembly.refuse(1, field.name, "is missing")
        elif count and not _fits(field, type_ := schema.field(field.name).type):
            assembly.refuse(1, field.name, f"is a column of {str(type_)[:60]}, not {_WANTED[field.type]}")


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return bool(
        pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    )


def _is_texts(type_: pa.DataType) -> bool:
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
    return bool(is_list and _is_text(type_.value_type))


def _is_labels(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return _is_text(type_.key_type) and _is_text(type_.item_type)
    return _is_struct(type_, _is_text)


def _is_struct(type_: pa.DataType, fits: Callable[[pa.DataType], bool]) -> bool:
    """Whether it is a struct of such children; one that is null throughout is no one's value."""
    return bool(
        pa.types.is_struct(type_) and all(fits(child.type) or pa.types.is_null(child.type) for child in type_)
    )


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _is_numbers(type_: pa.DataType) -> bool:
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
    return bool(is_list and _is_number(type_.value_type))


def _is_measures(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return _is_text(type_.key_type) and _is_number(type_.item_type)
    return _is_struct(type_, _is_number)


def _is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_integer(type_) or _is_text(type_))


_FITS: dict[str, Callable[[pa.DataType], bool]] = {
    "time": _is_time,
    "count": pa.types.is_integer,
    "amount": _is_number,
    "flag": pa.types.is_boolean,
    "components": _is_texts,
    "numbers": _is_numbers,
    "labels": _is_labels,
    "measures": _is_measures,
}
_WANTED = {
    "time": "timestamps, integers (nanoseconds since 1970) or RFC 3339 texts",
    "count": "integers",
    "amount": "numbers",
    "flag": "booleans",
    "components": "lists of texts",
    "numbers": "lists of numbers",
    "labels": "maps from text to text",
    "measures": "maps from text to number",
    "choice": "texts",
    "id": "texts",
    "component": "texts",
    "name": "texts",
    "text": "texts",
}


def _fits(field: Field, type_: pa.DataType) -> bool:
    return (field.optional and pa.types.is_null(type_)) or _FITS.get(field.type, _is_text)(type_)


def _column(assembly: Assembly, field: Field, array: pa.Array | None, rows: int, first: int) -> Part:
    """The column; errors of values go to the assembly, with the row's number."""
    if array is None or pa.types.is_null(array.type):
        return assembly.constant(field, rows)
    array = _nulls_outside(array)
    if array.null_count and not field.optional:
        for place in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[:20]:
            assembly.refuse(first + int(place), field.name, "is missing")
        return np.zeros(rows, np.int64)
    match field.type:
        case "time":
            return _some_times(assembly, field, array, first)
        case "count":
            return _integers(assembly, field, _filled(assembly, field, array), first)
        case "amount":
            floats = _filled(assembly, field, array).cast(pa.float64(), safe=False)
            amounts: NDArray[np.float64] = floats.to_numpy(zero_copy_only=False)
            return amounts + 0.0  # no negative zero
        case "flag":
            flags: NDArray[np.bool_] = _filled(assembly, field, array).to_numpy(zero_copy_only=False)
            return flags.astype(np.bool_)
        case "components":
            return _sets(assembly, field, array, first)
        case "numbers":
            return _numbers(assembly, field, array, first)
        case "labels" | "measures":
            return assembly.column(field, _objects(assembly, field, array, first))
        case "id":
            return assembly.column(field, array.to_pylist())
    texts, places = _texts(array, assembly.default(field))
    found = assembly.texts(field, texts)
    return found.take(places) if isinstance(found, Known) else found[places]


def _nulls_outside(array: pa.Array) -> pa.Array:
    """The array with its nulls where `null_count` sees them: a dictionary may hold one, too."""
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        return array.dictionary.take(array.indices)
    return array


def _filled(assembly: Assembly, field: Field, array: pa.Array) -> pa.Array:
    return pc.fill_null(array, assembly.default(field)) if array.null_count else array


def _integers(assembly: Assembly, field: Field, array: pa.Array, first: int) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] | NDArray[np.uint64] = array.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.uint64:
        for place in np.flatnonzero(numbers > np.uint64(2**63 - 1))[:20]:
            assembly.refuse(first + int(place), field.name, "is an integer beyond 64 bits")
    return numbers.astype(np.int64)


def _some_times(assembly: Assembly, field: Field, array: pa.Array, first: int) -> NDArray[np.int64]:
    if not array.null_count:
        return _times(assembly, field, array, first)
    found = np.full(len(array), assembly.default(field), np.int64)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    found[there] = _times(assembly, field, array.drop_null(), first)
    return found


def _times(assembly: Assembly, field: Field, array: pa.Array, first: int) -> NDArray[np.int64]:
    if _is_text(array.type):
        return _times_of_texts(assembly, field, array, first)
    if pa.types.is_integer(array.type):
        return from_nanoseconds(_integers(assembly, field, array, first))
    ticks: NDArray[np.int64] = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if array.type.unit == "ns":
        return from_nanoseconds(ticks)
    factor = PER_MICROSECOND[array.type.unit]
    beyond = np.abs(ticks.astype(np.float64)) > 2.0**62 / factor
    for place in np.flatnonzero(beyond)[:20]:
        assembly.refuse(first + int(place), field.name, "is out of range")
    return np.where(beyond, 0, ticks) * factor


def _times_of_texts(assembly: Assembly, field: Field, array: pa.Array, first: int) -> NDArray[np.int64]:
    texts = array.to_pylist()
    try:
        return times(texts)
    except msgspec.ValidationError:
        pass  # which ones?
    for number, text in enumerate(texts, first):
        try:
            msgspec.convert(text, Moment)
        except msgspec.ValidationError:
            assembly.refuse(number, field.name, f"{text[:60]!r} is not an RFC 3339 time with a zone")
            if assembly.full:
                break
    return np.zeros(len(texts), np.int64)


def _texts(array: pa.Array, default: str) -> tuple[list[str], NDArray[np.int64]]:
    """The texts that there are, and where each row's stands among them; only these are made into Python strings.

    What a dictionary holds and no row has is left out: nobody looked whether it is any good.
    """
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    texts, indices = array.dictionary, array.indices
    if indices.null_count:
        indices = indices.fill_null(len(texts))
        texts = pa.chunked_array([texts, pa.array([default], texts.type)]).combine_chunks()
    places: NDArray[np.int64] = indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    used = np.bincount(places, minlength=len(texts)) > 0
    if not used.all():
        texts, places = texts.filter(pa.array(used)), (np.cumsum(used) - 1)[places]
    return texts.to_pylist(), places


def _sets(assembly: Assembly, field: Field, array: pa.Array, first: int) -> Codes:
    index = assembly.set_indexes[field.name]
    members = _nulls_outside(array.flatten())
    if members.null_count:
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        owners = np.repeat(np.arange(len(array)), lengths)
        for place in np.unique(owners[members.is_null().to_numpy(zero_copy_only=False)])[:20]:
            assembly.refuse(first + int(place), field.name, "holds null, not a component")
        return np.zeros(len(array), np.int32)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    texts, places = _texts(members, "")
    codes = index.names.codes(texts)[places].tolist()
    ends = np.cumsum(lengths).tolist()
    # The same list over and over: look it up by its codes before making a set of it.
    known: dict[tuple[int, ...], int] = {}
    numbers = np.empty(len(ends), np.int32)
    start = 0
    for row, end in enumerate(ends):
        listed = tuple(codes[start:end])
        number = known.get(listed)
        if number is None:
            number = known[listed] = index.number(listed)
        numbers[row] = number
        start = end
    return numbers


def _numbers(assembly: Assembly, field: Field, array: pa.Array, first: int) -> Numbers:
    values = array.flatten()
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    if values.null_count:
        owners = np.repeat(np.arange(len(array)), sizes)
        for place in np.unique(owners[values.is_null().to_numpy(zero_copy_only=False)])[:20]:
            assembly.refuse(first + int(place), field.name, "holds null, not a number")
        values = pc.fill_null(values, 0)
    numbers: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return Numbers(indptr, numbers + 0.0)


def _objects(assembly: Assembly, field: Field, array: pa.Array, first: int) -> list[str | None]:
    """Labels or measures as canonical JSON; what is null in them is not there."""
    found: list[str | None] = []
    for row, value in enumerate(array.to_pylist(), first):
        if value is None:
            found.append(None)
            continue
        pairs = list(value.items() if isinstance(value, dict) else value)
        given = {key: one if isinstance(one, str) else float(one) for key, one in pairs if one is not None}
        names = [key for key, _ in pairs]
        if len(set(names)) < len(names) and not assembly.full:
            twice = next(key for place, key in enumerate(names) if key in names[:place])
            assembly.refuse(row, field.name, f"gives {printable(twice)!r} twice")
        found.append(canonical_json(given))
    return found


# Compressed buffers
# ----------------------------------------------------------------------------------------------------------
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
    """Offset of a field of a flatbuffer's table, 0 if it is absent."""
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
