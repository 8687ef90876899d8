"""An OpenID provider for tests: a real server that speaks discovery, authorization code with PKCE, JWKS, user info."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "dossier", "oidc-secret"


@dataclass
class Provider:
    """A provider of identities: who signs in there next, and with which claims."""

    address: str
    claims: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65_537, 2_048))

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "userinfo_endpoint": f"{self.address}/userinfo",
            "jwks_uri": f"{self.address}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Address that the browser is sent back to."""
        assert asked["client_id"] == CLIENT
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """None for a code that was used, a wrong secret, or a verifier that is not the challenge's."""
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or form.get("client_secret") != SECRET:
            return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return None
        now = int(time.time())
        fixed = {"iss": self.address, "aud": CLIENT, "iat": now, "exp": now + 60}
        token = jwt.encode({**self.claims, **fixed}, self.key, "RS256", headers={"kid": "k1"})
        return {"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": token}

    def jwks(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}


@contextmanager
def oidc_provider() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
                return
            known = {
                "/.well-known/openid-configuration": provider.discovery,
                "/jwks": provider.jwks,
                "/userinfo": lambda: provider.claims,
            }
            answer = known.get(parts.path)
            self._say(404 if answer is None else 200, {} if answer is None else answer())  # type: ignore[no-untyped-call]

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            told = provider.token({name: values[0] for name, values in parse_qs(body).items()})
            self._say(400 if told is None else 200, {"error": "invalid_grant"} if told is None else told)

        def _say(self, status: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
