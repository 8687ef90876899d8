"""Mappings that are ready to be stored, for monitoring systems with freely configurable payloads. Pure.

Each comes with what has to be pasted into the sender. Addresses in it stand for yours: ADDRESS ends with the
integration's key.
"""

from __future__ import annotations

from ingest.integrations.generic.presets.chats import CHATS
from ingest.integrations.generic.presets.checkmk import CHECKMK
from ingest.integrations.generic.presets.icinga import ICINGA
from ingest.integrations.generic.presets.index import ADDRESS, Preset
from ingest.integrations.generic.presets.kubernetes import KUBERNETES
from ingest.integrations.generic.presets.more import MORE
from ingest.integrations.generic.presets.nagios import NAGIOS
from ingest.integrations.generic.presets.proxmox import PROXMOX
from ingest.integrations.generic.presets.repositories import REPOSITORIES
from ingest.integrations.generic.presets.vendors import VENDORS
from ingest.integrations.generic.presets.zabbix import ZABBIX

__all__ = ["ADDRESS", "HOSTED", "READY", "Preset"]

HOSTED: tuple[Preset, ...] = (*VENDORS, *REPOSITORIES, CHECKMK, PROXMOX, *MORE, *CHATS)
"""Those that are written from documentation. Messages for chats come last: others may look like them."""
READY: dict[str, Preset] = {ready.name: ready for ready in (NAGIOS, ICINGA, ZABBIX, KUBERNETES, *HOSTED)}
