"""Messages as JSON by HTTP, to addresses that are allowed (`incidents.outbound`)."""

from __future__ import annotations

import json

from incidents.domain.notifications import responses
from incidents.domain.notifications.responses import Reply
from incidents.domain.webhooks import sign
from incidents.notifications.queue import Outgoing
from incidents.outbound import AddressRefusedError, UnreachableError, post
from ingest.queries import now_utc

TIMEOUT = 10.0


def send_hook(outgoing: Outgoing) -> Reply:
    body = json.dumps(outgoing.message.body, ensure_ascii=False, sort_keys=True).encode()
    headers = {
        "Content-Type": "application/json",
        # The same when it is sent again, so that the receiver can drop the second.
        "Idempotency-Key": str(outgoing.id),
    }
    now = now_utc()
    if outgoing.secret:
        headers["Dossier-Signature"] = sign([outgoing.secret], int(now.timestamp()), body)
    try:
        answer = post(outgoing.address, body, headers, timeout=TIMEOUT)
    except AddressRefusedError as error:
        return responses.refused(str(error))
    except UnreachableError as error:
        return responses.no_answer(str(error))
    return responses.http(answer.status, answer.headers, answer.text, now)
