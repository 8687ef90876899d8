"""State of the demo between starts, in DOSSIER_HOME: login, keys, data time."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path


@dataclass(slots=True)
class Notes:
    """`sent` counts the minutes of the world that the endpoint has acknowledged; None before the inventory is
    in."""

    path: Path
    user: str
    password: str
    key: str
    start: datetime
    sent: int | None = None
    cluster_key: str = ""
    """Of the scripted cluster operator; empty in the notes of an older demo, which goes on without one."""
    admin_key: str = ""
    """Configures people, rotations and policies; empty in older notes: the demo goes on without people."""
    alerts_key: str = ""
    pager_port: int = 0
    """Port of the pagers of the demo's people; 0: not chosen yet."""

    @classmethod
    def load(cls, path: Path) -> Notes | None:
        if not path.exists():
            return None
        stored = json.loads(path.read_text())
        return cls(path, **{**stored, "start": datetime.fromisoformat(stored["start"])})

    def save(self) -> None:
        stored = {name: value for name, value in asdict(self).items() if name != "path"}
        written = self.path.with_suffix(".new")
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            json.dump({**stored, "start": self.start.isoformat()}, out)
        written.replace(self.path)
