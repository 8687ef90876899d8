"""A start by root: refused unless DOSSIER_ALLOW_ROOT is set, and root is given up before our processes start."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from deploy import privileges
from deploy.embedded import Home, give
from deploy.privileges import PrivilegeError


def allow_root() -> None:
    """Raises PrivilegeError if root starts this without DOSSIER_ALLOW_ROOT."""
    if privileges.is_root() and not settings.ALLOW_ROOT:
        raise PrivilegeError(
            "Started by root. Start it as another user, or set DOSSIER_ALLOW_ROOT=true to continue as the owner of"
            f" DOSSIER_HOME ({settings.HOME.root}), or as a separate user id if root owns it."
        )


def leave_root(home: Home, say: Callable[[str], None]) -> None:
    """Go on as the owner of the home, and all that starts from here with it. A home of root's gets an owner; where that
    could not get to the code, this process stays root and says so. Raises PrivilegeError."""
    if not privileges.is_root():
        return
    account = privileges.owner(home.root)
    if privileges.is_roots(home.root):
        if problem := privileges.obstacle(home.root, account):
            say(f"all processes run as root, including pages and analyzers: {problem}")
            return
        give(home, account, cluster=not settings.DATABASE_URL)
    privileges.give_up(account, home.root)
    say(f"started by root; all processes run as {account}")
