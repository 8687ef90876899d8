"""Mappings that are ready to be stored, for monitoring systems that can send whatever they are told to. Pure.

Each comes with what has to be pasted into the sender. Addresses in it stand for yours: ADDRESS ends with the
integration's key.
"""

from __future__ import annotations

from ingest.doors.mappings.chats import CHATS
from ingest.doors.mappings.checkmk import CHECKMK
from ingest.doors.mappings.icinga import ICINGA
from ingest.doors.mappings.more import MORE
from ingest.doors.mappings.nagios import NAGIOS
from ingest.doors.mappings.proxmox import PROXMOX
from ingest.doors.mappings.ready import ADDRESS, Ready
from ingest.doors.mappings.repositories import REPOSITORIES
from ingest.doors.mappings.vendors import VENDORS
from ingest.doors.mappings.zabbix import ZABBIX

__all__ = ["ADDRESS", "HOSTED", "READY", "Ready"]

HOSTED: tuple[Ready, ...] = (*VENDORS, *REPOSITORIES, CHECKMK, PROXMOX, *MORE, *CHATS)
"""Those that are written from documentation. Messages for chats come last: others may look like them."""
READY: dict[str, Ready] = {ready.name: ready for ready in (NAGIOS, ICINGA, ZABBIX, *HOSTED)}
