"""Integration keys in Django REST framework: who calls, and whether they may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from ingest.api.keys import ADMIN, Key, authenticate, why_not

if TYPE_CHECKING:  # rest_framework.views imports this module through the settings
    from rest_framework.views import APIView


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The user of a request that carries a key: no person, but signed in."""

    key: Key
    is_authenticated: bool = True
    is_active: bool = True
    pk: None = None

    def get_username(self) -> str:
        return self.key.name


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer KEY`. `request.auth` is the Key; without the header the next class is asked."""

    def authenticate(self, request: Request) -> tuple[KeyHolder, Key] | None:
        header = request.headers.get("Authorization")
        if header is None or not header.lower().startswith("bearer"):
            return None
        key = authenticate(header)
        if key is None:
            raise AuthenticationFailed(why_not(header))
        return KeyHolder(key), key

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        return 'Bearer realm="dossier"'


class HasScope(BasePermission):
    """A key needs the scope (or `admin`). People who are signed in need none, but only staff does what needs `admin`.

    `permission_classes = [HasScope("incidents:read")]`
    """

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.message = f"The key lacks the scope {scope}."
        if scope == ADMIN:
            self.message = "This needs a key with the scope admin, or a person who is staff."

    def __call__(self) -> HasScope:
        return self  # DRF calls what it is given a class

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        if isinstance(request.auth, Key):
            return request.auth.allows(self.scope)
        if not (request.user and request.user.is_authenticated):
            return False
        return self.scope != ADMIN or bool(getattr(request.user, "is_staff", False))
