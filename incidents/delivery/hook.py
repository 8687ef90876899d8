"""Messages as JSON by HTTP, to addresses that are allowed (`incidents.posting`)."""

from __future__ import annotations

import json

from incidents.delivery.claiming import Outgoing
from incidents.domain import replies
from incidents.domain.replies import Reply
from incidents.domain.webhooks import sign
from incidents.posting import Refused, Unreachable, post
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
    except Refused as error:
        return replies.refused(str(error))
    except Unreachable as error:
        return replies.no_answer(str(error))
    return replies.http(answer.status, answer.headers, answer.text, now)
