"""Zabbix' server of Debian's package `zabbix-server-pgsql`, on an embedded Postgres, with one host and one trigger.

What its pages would write into its tables is written here: the media type that is ready to paste, a user with it,
and an action for problems, recoveries and updates.
"""

from __future__ import annotations

import gzip
import json
import re
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg2

from deploy.embedded import Home, start_postgres, stop
from ingest.integrations.generic.presets import READY
from ingest.integrations.generic.presets.zabbix import PARAMETERS
from tests.senders.daemons import free_port, running

ZABBIX = "zabbix_server"
SCHEMA = Path("/usr/share/zabbix-server-pgsql")
WANTED = ["role", "users", "usrgrp", "users_groups", "hstgrp", "config", "globalmacro", "ids", "ha_node"]
"""Of the initial data: no templates."""
HOST, ITEM, TRIGGER, MEDIA, ACTION = 90001, 90002, 90003, 90004, 90005


@dataclass(frozen=True)
class Server:
    """A running server: where it takes values, and its database."""

    port: int
    dsn: str

    def send(self, value: int) -> None:
        """A value of the item, as zabbix_sender sends it. Raises ValueError until the server knows the item."""
        told = {"request": "sender data", "data": [{"host": "db-1", "key": "disk", "value": str(value)}]}
        data = json.dumps(told).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
            line.sendall(b"ZBXD\x01" + struct.pack("<Q", len(data)) + data)
            answer = line.recv(4096)[13:].decode()
        if "processed: 1" not in answer:
            raise ValueError(answer)

    def acknowledge(self, message: str) -> None:
        """As the pages do, by another user: an acknowledgement of the problem, and a task that tells the server."""
        now = int(time.time())
        with closing(psycopg2.connect(self.dsn)) as connection, connection, connection.cursor() as cursor:
            cursor.execute("SELECT max(eventid) FROM events WHERE source = 0 AND value = 1")
            (event,) = cursor.fetchone() or (0,)
            told = (
                ("INSERT INTO acknowledges VALUES (1, 2, %s, %s, %s, 6, 0, 0)", (event, now, message)),
                ("UPDATE events SET acknowledged = 1 WHERE eventid = %s", (event,)),
                ("UPDATE problem SET acknowledged = 1 WHERE eventid = %s", (event,)),
                ("INSERT INTO task (taskid, type, status, clock, ttl) VALUES (1, 4, 1, %s, 0)", (now,)),
                ("INSERT INTO task_acknowledge VALUES (1, 1)", ()),
            )
            for statement, values in told:
                cursor.execute(statement, values)


@contextmanager
def zabbix(directory: Path, address: str) -> Iterator[Server]:
    """A server that notifies an address through its ready mapping."""
    home = Home(directory / "home")
    home.root.mkdir()
    postgres = start_postgres(home, settings={"fsync": "off"})
    try:
        dsn = home.database_url
        with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(gzip.decompress((SCHEMA / "schema.sql.gz").read_bytes()).decode())
            lines = gzip.decompress((SCHEMA / "data.sql.gz").read_bytes()).decode().splitlines()
            start = re.compile(rf"INSERT INTO ({'|'.join(WANTED)})[ (]")
            cursor.execute("\n".join(line for line in lines if start.match(line)))
            _configure(cursor, address)
        # Its configuration takes no port above 32767, which is where free ones mostly are.
        server = Server(free_port() % 20_000 + 10_000, dsn)
        (directory / "zabbix.conf").write_text(
            f"DBHost={home.run}\nDBName=dossier\nDBUser=dossier\nAllowRoot=1\nLogFile={directory}/zabbix.log\n"
            f"ListenPort={server.port}\nListenIP=127.0.0.1\nPidFile={directory}/zabbix.pid\nSocketDir={directory}\n"
            "StartPollers=1\nStartPingers=0\nStartDiscoverers=0\nStartHTTPPollers=0\nStartPreprocessors=1\n"
            "StartPollersUnreachable=1\nStartTrappers=1\nStartDBSyncers=1\nStartLLDProcessors=1\nStartTimers=1\n"
            "StartEscalators=1\nStartAlerters=1\nCacheUpdateFrequency=1\nStartODBCPollers=0\nStartHistoryPollers=1\n"
            "StartReportWriters=0\nAllowUnsupportedDBVersions=1\nDebugLevel=3\n"
        )
        command = [ZABBIX, "-f", "-c", str(directory / "zabbix.conf")]
        with running(command, directory / "zabbix.out", lambda: _knows_its_item(server)):
            yield server
    finally:
        stop(postgres, number=signal.SIGQUIT)


def _knows_its_item(server: Server) -> bool:
    try:
        server.send(10)
    except (OSError, ValueError):
        return False
    return True


def _configure(cursor: psycopg2.extensions.cursor, address: str) -> None:
    configured = dict(READY["zabbix"].configured(address))
    script = configured["Script of the media type"]
    told: list[tuple[str, dict[str, object]]] = [
        ("hosts", {"hostid": HOST, "host": "db-1", "name": "db-1"}),
        ("interface", {"interfaceid": HOST, "hostid": HOST, "main": 1, "ip": "192.0.2.7"}),
        ("hosts_groups", {"hostgroupid": HOST, "hostid": HOST, "groupid": 2}),
        (
            "items",
            {"itemid": ITEM, "hostid": HOST, "type": 2, "name": "disk", "key_": "disk", "value_type": 3},
        ),
        ("item_rtdata", {"itemid": ITEM}),
        (
            "triggers",
            {
                "triggerid": TRIGGER,
                "expression": f"{{{ITEM}}}>90",
                "description": 'Disk "/var" of {HOST.NAME} is full',
                "priority": 4,
                "comments": "Free it, or make it larger.",
                "url": "https://wiki.example.com/disk",
                "opdata": "{ITEM.LASTVALUE1} %",
            },
        ),
        (
            "functions",
            {"functionid": ITEM, "itemid": ITEM, "triggerid": TRIGGER, "name": "last", "parameter": "$"},
        ),
        ("trigger_tag", {"triggertagid": 1, "triggerid": TRIGGER, "tag": "scope", "value": "capacity"}),
        (
            "media_type",
            {"mediatypeid": MEDIA, "type": 4, "name": "Dossier", "script": script, "process_tags": 0},
        ),
        ("media", {"mediaid": 90001, "userid": 1, "mediatypeid": MEDIA, "sendto": "dossier"}),
        ("actions", {"actionid": ACTION, "name": "Dossier", "eventsource": 0, "esc_period": "1h"}),
    ]
    for number, (name, value) in enumerate(PARAMETERS.items()):
        value = address if name == "url" else value
        row = {"mediatype_paramid": 90000 + number, "mediatypeid": MEDIA, "name": name, "value": value}
        told.append(("media_type_param", row))
    for recovery, kind in enumerate((0, 11, 12)):
        number = 90000 + recovery
        row = {"operationid": number, "actionid": ACTION, "operationtype": kind, "recovery": recovery}
        message = {
            "mediatype_messageid": number,
            "mediatypeid": MEDIA,
            "eventsource": 0,
            "recovery": recovery,
        }
        told += [
            ("media_type_message", {**message, "subject": "-", "message": "-"}),
            ("operations", row),
            ("opmessage", {"operationid": number, "default_msg": 1}),
        ]
        if recovery == 0:
            told.append(("opmessage_usr", {"opmessage_usrid": 90000, "operationid": number, "userid": 1}))
    for table, values in told:
        columns = ", ".join(values)
        places = ", ".join(["%s"] * len(values))
        cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", tuple(values.values()))
