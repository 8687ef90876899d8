"""The messages of Prometheus remote write, as far as samples need them. Pure.

No package on PyPI carries them, so they are declared here by their field numbers, from the public prompb/remote.proto
and prompb/types.proto (remote write 1.0, https://prometheus.io/docs/specs/prw/remote_write_spec/) and
prompb/io/prometheus/write/v2/types.proto (2.0, https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/). Unknown
fields are skipped, as protobuf has it.

Some fields are declared as bytes where the public files have messages, which is the same on the wire: series and labels
of 1.0, because a series says the same labels in every request and they need to be read once; samples, because most
look alike and are read all at once; and exemplars, which are not kept.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "bytes": _FIELD.TYPE_BYTES,
    "string": _FIELD.TYPE_STRING,
    "double": _FIELD.TYPE_DOUBLE,
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
    "uint32": _FIELD.TYPE_UINT32,
}
_HISTOGRAM = ("uint64 count_int = 1", "double count_float = 2", "double sum = 3", "int64 timestamp = 15")
_V1: dict[str, tuple[str, ...]] = {
    "Label": ("string name = 1", "string value = 2"),
    "Sample": ("double value = 1", "int64 timestamp = 2"),  # the same in 2.0
    "Histogram": _HISTOGRAM,
    "TimeSeries": (
        "repeated bytes labels = 1",
        "repeated bytes samples = 2",
        "repeated bytes exemplars = 3",
        "repeated Histogram histograms = 4",
    ),
    "WriteRequest": ("repeated bytes timeseries = 1",),
}
_V2: dict[str, tuple[str, ...]] = {
    "Histogram": _HISTOGRAM,
    "TimeSeries": (
        "repeated uint32 labels_refs = 1",
        "repeated bytes samples = 2",
        "repeated Histogram histograms = 3",
        "repeated bytes exemplars = 4",
    ),
    "Request": ("repeated string symbols = 4", "repeated TimeSeries timeseries = 5"),
}


def _classes(package: str, messages: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """The classes of messages that are declared as .proto files declare them."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for declared in fields:
            *repeated, type_, field, _, number = declared.split()
            label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
            made = message.field.add(name=field, number=int(number), label=label)
            if type_ in _TYPES:
                made.type = _TYPES[type_]
            else:
                made.type, made.type_name = _FIELD.TYPE_MESSAGE, f".{package}.{type_}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{package}.{name}") for name in messages}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}


V1: Final = _classes("prometheus", _V1)
V2: Final = _classes("io.prometheus.write.v2", _V2)
