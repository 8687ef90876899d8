"""A worker of the peer in `append.py`: the recorder of `eventsourcing`, run in an environment of its own.

Obeys the same lines as `append_writer.py`, with events of about the same size.
"""

from __future__ import annotations

import json
import select
import sys
import time
import uuid
from typing import Any

from eventsourcing.persistence import StoredEvent  # type: ignore[import-not-found,unused-ignore]
from eventsourcing.postgres import (  # type: ignore[import-not-found,unused-ignore]
    PostgresApplicationRecorder,
    PostgresDatastore,
)

STREAM_LENGTH = 10  # appends
BODY = {"title": "Disks of storage cluster s7 fail more often than usual", "more": "x" * 320}


def write(recorder: Any) -> None:
    stream, version = uuid.uuid4(), 0
    for line in sys.stdin:
        batch, seconds = int(line.split()[0]), float(line.split()[1])
        started, count = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < seconds:
            if version >= STREAM_LENGTH * batch:
                stream, version = uuid.uuid4(), 0
            numbers = range(version + 1, version + 1 + batch)
            recorder.insert_events(
                [StoredEvent(stream, number, "bench:opened", json.dumps(BODY).encode()) for number in numbers]
            )
            version += batch
            count += batch
        print(json.dumps([count, elapsed]), flush=True)


def read(recorder: Any) -> None:
    for _ in sys.stdin:
        last, delivered, ending = recorder.max_notification_id() or 0, 0, False
        print("following", flush=True)
        while True:
            ending = ending or bool(select.select([sys.stdin], [], [], 0)[0])
            found = recorder.select_notifications(last + 1, 1000)
            for notification in found:
                json.loads(notification.state)
            delivered += len(found)
            if found:
                last = found[-1].id
            elif ending:
                break
            else:
                time.sleep(0.005)
        sys.stdin.readline()
        print(delivered, flush=True)


def main(host: str, side: str, task: str = "write") -> None:
    datastore = PostgresDatastore(dbname="dossier", host=host, port="5432", user="dossier", password="")
    recorder = PostgresApplicationRecorder(datastore, events_table_name="peer")
    if side == "create":
        recorder.create_table()
        return
    recorder.max_notification_id()  # connects
    print("ready", flush=True)
    if task == "read":
        read(recorder)
    else:
        write(recorder)


if __name__ == "__main__":
    main(*sys.argv[1:])
