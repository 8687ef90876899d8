"""POST /api/v1/telemetry/{kind}/{format}: dumps of PyTorch's flight recorder and traces of its profiler, as rows.

A form with files, as `curl -F file=@...` sends it. Django spools each to disk, and readers take it as a stream, so that
a trace never lies in memory whole; what was spooled is deleted before the answer. Stored all or none, under one
receipt; the same files again are not stored twice.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import IO, Any, Final, cast

from django.conf import settings
from django.core.exceptions import TooManyFilesSent
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt

from ingest.api.admission import OverloadedError, admitted
from ingest.api.keys import Key
from ingest.api.problem_details import problem
from ingest.api.rejections import noted
from ingest.api.telemetry import Accepted, key_of_sender, reporting_outage
from ingest.db import database
from ingest.integrations import flight_recorder
from ingest.telemetry.decode.body import decode
from ingest.telemetry.errors import InvalidRowsError
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import tables
from ingest.telemetry.store.tables import bounds
from ingest.telemetry.store.write import Delivery, find_repeated, receive

GZIP: Final = b"\x1f\x8b"
LONGEST_NAME: Final = 200
MOST_DUMP: Final = 64 * 2**20
"""Bytes of one dump: 20,000 records have about 10 MB."""
Row = dict[str, Any]


class InvalidUploadError(ValueError):
    """The request or one of its files is not what this address takes; nothing was stored."""


def _dumps(files: Sequence[UploadedFile[Any]], request: HttpRequest) -> Iterable[Row]:
    job, dumps = _word(request, "job"), []
    for one in files:
        name = one.name or "file"
        try:
            dumps.append(flight_recorder.read(name, _whole(one)))
        except flight_recorder.InvalidDumpError as error:
            raise InvalidUploadError(f"{name}: {error}") from error
    try:
        return flight_recorder.convert(dumps, job).rows
    except flight_recorder.InvalidDumpError as error:
        raise InvalidUploadError(str(error)) from error


def _traces(files: Sequence[UploadedFile[Any]], request: HttpRequest) -> Iterable[Row]:
    from ingest.integrations import profiler_trace  # loads numpy

    job, role = _word(request, "job"), _word(request, "role", "all")
    worker = _word(request, "worker", "")
    if worker and len(files) > 1:
        raise InvalidUploadError("worker goes with one file; without it each trace names its rank")
    rows: list[Row] = []
    for one in files:
        try:
            made = profiler_trace.convert(partial(_reopened, one), job, worker, role)
        except profiler_trace.InvalidTraceError as error:
            raise InvalidUploadError(f"{one.name or 'file'}: {error}") from error
        rows += made.rows
    return rows


FORMATS: Final[dict[tuple[str, str], Callable[[Sequence[UploadedFile[Any]], HttpRequest], Iterable[Row]]]] = {
    ("collective", "flight-recorder"): _dumps,
    ("function_profile", "profiler-trace"): _traces,
}


@csrf_exempt
@reporting_outage
def upload(request: HttpRequest, kind: str, format_: str) -> HttpResponse:
    """Rows of the files of a form."""
    if request.method != "POST":
        answer = problem(405, "Method Not Allowed", "Only POST here.")
        answer["Allow"] = "POST"
        return answer
    database.skip_health_check()
    if isinstance(key := key_of_sender(request), HttpResponse):
        return key
    if (reader := FORMATS.get((kind, format_))) is None:
        known = ", ".join(f"{one}/{other}" for one, other in FORMATS)
        return problem(
            404, "Not Found", f"There is no format {format_[:80]!r} of {kind[:80]!r}, only {known}."
        )
    if not key.allows_kind(kind):
        return problem(403, "Forbidden", f"The key {key.name} may send {', '.join(sorted(key.kinds))} only.")
    try:
        with admitted(key.name, "telemetry"), closing(request):
            answer = _stored(request, kind, key, reader)
            return answer if isinstance(answer, Accepted) else noted(answer, key.name, f"{kind}/{format_}")
    except OverloadedError as error:
        answer = problem(error.status, error.status.phrase, f"{error}.")
        answer["Retry-After"] = str(error.retry_after)
        return answer


def _stored(
    request: HttpRequest,
    kind: str,
    key: Key,
    reader: Callable[[Sequence[UploadedFile[Any]], HttpRequest], Iterable[Row]],
) -> HttpResponse:
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length.isdecimal():
        return problem(411, "Length Required", "Nothing was stored: send a Content-Length, as curl -F does.")
    if int(length[:20]) > settings.UPLOAD_MAX_BODY:
        detail = f"Nothing was stored: the body is larger than {settings.UPLOAD_MAX_BODY} bytes."
        return problem(413, "Content Too Large", detail)
    if request.content_type != "multipart/form-data":
        detail = "Nothing was stored: send files as multipart/form-data: curl -F file=@FILE."
        return problem(415, "Unsupported Media Type", detail)
    try:
        files = _files(request)
        rows = list(reader(files, request))
        if not rows:
            raise InvalidUploadError("the files hold no rows")
        body = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
        if len(body) > settings.TELEMETRY_MAX_DECODED_BODY:
            raise InvalidUploadError(
                f"{len(rows)} rows are too many for one request; convert the files with `manage.py convert` and send"
                " the rows in parts"
            )
        again = f"{kind} files {hashlib.sha256(body).hexdigest()}"
        trace = getattr(request, "trace", None)
        delivery = Delivery(key.name, hashlib.sha256(body).digest(), int(length), trace, again)
        if receipt := find_repeated(KINDS[kind], delivery):
            return Accepted(receipt)
        within = bounds(KINDS[kind], datetime.now(UTC))
        made = decode(
            "application/x-ndjson", KINDS[kind], body, key.region or "default", within, tables.known_texts()
        )
        return Accepted(receive(made, delivery))
    except InvalidRowsError as error:
        return problem(400, "Bad Request", f"Nothing was stored: {error.rows[0]}.")
    except (InvalidUploadError, MultiPartParserError) as error:
        return problem(400, "Bad Request", f"Nothing was stored: {error}.")


def _files(request: HttpRequest) -> list[UploadedFile[Any]]:
    """All files of the form, on disk."""
    request.upload_handlers = [TemporaryFileUploadHandler(request)]
    try:
        files = [one for name in request.FILES for one in request.FILES.getlist(name)]
    except TooManyFilesSent as error:
        most = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        raise InvalidUploadError(f"the form has more than {most} files") from error
    except OSError as error:
        raise InvalidUploadError(f"the body could not be read to its end: {error}") from error
    if not files:
        raise InvalidUploadError("the form has no file: curl -F file=@FILE")
    return files


def _word(request: HttpRequest, name: str, default: str | None = None) -> str:
    given = request.GET.get(name, default)
    if given is None:
        raise InvalidUploadError(f"the parameter {name} is missing: ?{name}=NAME")
    if len(given) > LONGEST_NAME or not given.isprintable():
        raise InvalidUploadError(f"{name}: at most {LONGEST_NAME} printable characters")
    return given


def _opened(file: UploadedFile[Any]) -> IO[bytes]:
    """The file from its beginning, unpacked as it is read."""
    file.seek(0)
    packed = file.read(2) == GZIP
    file.seek(0)
    inner = cast("IO[bytes]", file.file)
    return cast("IO[bytes]", gzip.open(inner)) if packed else inner


def _reopened(file: UploadedFile[Any]) -> AbstractContextManager[IO[bytes]]:
    """The same for a second reading: the file on disk stays open, as it is deleted when closed."""
    return nullcontext(_opened(file))


def _whole(file: UploadedFile[Any]) -> bytes:
    try:
        content = _opened(file).read(MOST_DUMP + 1)
    except (OSError, EOFError) as error:
        raise InvalidUploadError(f"{file.name}: is not a whole gzip file: {error}") from error
    if len(content) > MOST_DUMP:
        raise InvalidUploadError(f"{file.name}: is larger than {MOST_DUMP} bytes")
    return content
