"""Address and key of the server: from the environment, else from the file that `dossier login` writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .errors import DENIED, USAGE, ClientError

LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Account:
    """A server, a key for it, and the login of the person at this terminal ("" where not given)."""

    url: str
    key: str
    user: str = ""

    def is_plain(self) -> bool:
        """Whether the key crosses a network without encryption."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in LOCAL


def address(text: str) -> str:
    """The address of a server without a trailing slash. Raises ClientError where it is none."""
    parts = urlsplit(text.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ClientError(f"{text!r} is not the address of a server; use https://dossier.example.com", USAGE)
    return text.strip().rstrip("/")


def settings_path(environment: Mapping[str, str] = os.environ) -> Path:
    """File of the account: `dossier/client.json` in the XDG configuration directory."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "dossier" / "client.json"


def save_account(account: Account, environment: Mapping[str, str] = os.environ) -> Path:
    """Store the account, readable by its owner alone; an interrupted write leaves the one before."""
    path = settings_path(environment)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(account), file, indent=2)
    new.replace(path)
    return path


def load_account(environment: Mapping[str, str] = os.environ) -> Account:
    """The account in use. DOSSIER_URL, DOSSIER_KEY and DOSSIER_USER override the stored one.

    A stored key is sent to the server that it was stored for and to no other. Raises ClientError.
    """
    stored = _stored(settings_path(environment))
    url = environment.get("DOSSIER_URL") or stored.get("url", "")
    if not url:
        raise ClientError("no server yet; run: dossier login https://dossier.example.com", DENIED)
    url = address(url)
    key = environment.get("DOSSIER_KEY") or (stored.get("key", "") if url == stored.get("url") else "")
    if not key:
        raise ClientError(f"no key for {url}; set DOSSIER_KEY or run: dossier login {url}", DENIED)
    return Account(url, key, environment.get("DOSSIER_USER") or stored.get("user", ""))


def _stored(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ClientError(f"cannot read {path}: {error}; run `dossier login` again", DENIED) from None
    texts = isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
    if not texts:
        raise ClientError(f"{path} contains no account; run `dossier login` again", DENIED)
    return dict(found)
