"""Call graphs of microservice applications for `trace_blame`'s worlds: what calls what, how often, and in which way.

Shapes follow what is published of production graphs (Luo et al., "Characterizing Microservice Dependency and
Performance", SoCC 2021): a hot path that is short, a few services that most requests share, calls to memory caches
beside calls to databases, asynchronous calls by message queues, and fan-out that is far from equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Call:
    """`count` calls of `target` on average: together (`par`), one after the other (`seq`) or by a queue (`later`).

    A hit of the cache (`hit`) makes the call unnecessary. A critical call that fails in all tries fails its caller.
    """

    target: str
    mode: str = "seq"
    chance: float = 1.0
    count: float = 1.0
    hit: float = 0.0
    tries: int = 1
    critical: bool = True


@dataclass(frozen=True)
class Operation:
    """Work of a service: its median own time and the spread (log-normal sigma) of it.

    `inside` is work that only the client records, in its own name: a database that sends no spans.
    """

    service: str
    name: str
    own_us: float
    sigma: float = 0.4
    calls: tuple[Call, ...] = ()
    inside: bool = False

    @property
    def key(self) -> str:
        return f"{self.service}.{self.name}"


@dataclass(frozen=True)
class Graph:
    """Operations by `service.name`, instances per service, and how often each root is asked for.

    `client_spans`: a call is recorded by both sides; otherwise only by the side that serves it.
    """

    operations: Mapping[str, Operation]
    pods: Mapping[str, int]
    roots: Mapping[str, float]
    client_spans: bool = True
    batch: str = ""


def _graph(
    operations: tuple[Operation, ...],
    pods: Mapping[str, int],
    roots: Mapping[str, float],
    client_spans: bool = True,
    batch: str = "",
) -> Graph:
    every = {one.service: pods.get(one.service, 2) for one in operations}
    return Graph({one.key: one for one in operations}, every, roots, client_spans, batch)


STREAMING = _graph(
    (
        Operation("edge", "GET /home", 700, 0.3, (Call("session.check"), Call("home.page"))),
        Operation("edge", "POST /play", 600, 0.3, (Call("session.check"), Call("playback.start"))),
        Operation("edge", "POST /beacon", 300, 0.3, (Call("events.publish", "later"),)),
        Operation(
            "session", "check", 500, 0.5, (Call("session-cache.get"), Call("users.load", hit=0.92, tries=2))
        ),
        Operation("session-cache", "get", 180, 0.3),
        Operation("users", "load", 1_500, 0.5, (Call("users-db.select"),)),
        Operation("users-db", "select", 1_200, 0.6),
        Operation(
            "home",
            "page",
            2_500,
            0.4,
            (
                Call("catalog.rows", "par", count=5),
                Call("ranker.order", critical=False),
                Call("artwork.urls", "par", count=3, hit=0.6, critical=False),
                Call("events.publish", "later", 0.5),
            ),
        ),
        Operation(
            "catalog", "rows", 1_800, 0.5, (Call("catalog-cache.get"), Call("catalog-db.select", hit=0.85))
        ),
        Operation("catalog-cache", "get", 220, 0.3),
        Operation("catalog-db", "select", 4_000, 0.8),
        Operation(
            "ranker",
            "order",
            9_000,
            0.5,
            (Call("features.read", "par", count=4), Call("users.load", hit=0.7)),
        ),
        Operation("features", "read", 1_100, 0.7),
        Operation("artwork", "urls", 800, 0.4),
        Operation(
            "playback",
            "start",
            1_600,
            0.4,
            (
                Call("entitlement.allows", tries=2),
                Call("license.issue"),
                Call("steering.pick"),
                Call("events.publish", "later"),
            ),
        ),
        Operation(
            "entitlement", "allows", 900, 0.5, (Call("users.load", hit=0.5), Call("billing.plan", chance=0.3))
        ),
        Operation("billing", "plan", 3_500, 0.6),
        Operation("license", "issue", 6_000, 0.3, (Call("keys.sign"),)),
        Operation("keys", "sign", 2_800, 0.2),
        Operation("steering", "pick", 1_000, 0.5, (Call("catalog.rows"),)),
        Operation(
            "events",
            "publish",
            400,
            0.4,
            (Call("sessionizer.consume", "later"), Call("audit.consume", "later", 0.4)),
        ),
        Operation("sessionizer", "consume", 5_000, 0.8),
        Operation("audit", "consume", 2_000, 0.6),
    ),
    {
        "edge": 6,
        "session": 4,
        "catalog": 8,
        "features": 5,
        "home": 4,
        "users": 4,
        "users-db": 1,
        "catalog-db": 1,
        "keys": 1,
    },
    {"edge.GET /home": 5, "edge.POST /play": 3, "edge.POST /beacon": 2},
)

LEDGER = _graph(
    (
        Operation(
            "gateway", "POST /payments", 800, 0.3, (Call("tokens.verify"), Call("payments.create", tries=2))
        ),
        Operation("gateway", "GET /balance", 500, 0.3, (Call("tokens.verify"), Call("accounts.read"))),
        Operation("tokens", "verify", 400, 0.4, (Call("ledger-db.select tokens", hit=0.8),)),
        Operation("ledger-db", "select tokens", 900, 0.5, inside=True),
        Operation(
            "payments",
            "create",
            3_000,
            0.4,
            (
                Call("accounts.read"),
                Call("limits.check"),
                Call("fraud.score", tries=2, critical=False),
                Call("postings.write"),
                Call("notify.enqueue", "later"),
            ),
        ),
        Operation("accounts", "read", 1_000, 0.4, (Call("ledger-db.select accounts", count=1.5),)),
        Operation("ledger-db", "select accounts", 1_400, 0.6, inside=True),
        Operation("limits", "check", 700, 0.4, (Call("limits-store.get"), Call("accounts.read", chance=0.4))),
        Operation("limits-store", "get", 250, 0.4),
        Operation(
            "fraud", "score", 14_000, 0.5, (Call("devices.lookup", "par"), Call("history.window", "par"))
        ),
        Operation("devices", "lookup", 2_000, 0.6),
        Operation("history", "window", 5_000, 0.7, (Call("ledger-db.select postings"),)),
        Operation("ledger-db", "select postings", 3_800, 0.8, inside=True),
        Operation(
            "postings",
            "write",
            1_500,
            0.4,
            (Call("ledger-db.insert postings", count=2), Call("fx.rate", chance=0.3)),
        ),
        Operation("ledger-db", "insert postings", 2_200, 0.5, inside=True),
        Operation("fx", "rate", 600, 0.5),
        Operation("notify", "enqueue", 500, 0.4, (Call("mailer.send", "later", 0.7),)),
        Operation("mailer", "send", 45_000, 0.9),
        Operation(
            "settlement",
            "run",
            90_000,
            0.4,
            (Call("postings.write", count=12), Call("history.window", count=6)),
        ),
    ),
    {"gateway": 4, "payments": 5, "accounts": 4, "fraud": 3, "tokens": 4, "fx": 1, "settlement": 1},
    {"gateway.POST /payments": 4, "gateway.GET /balance": 3},
    client_spans=False,
    batch="settlement.run",
)

SEARCH = _graph(
    (
        Operation(
            "front",
            "GET /search",
            900,
            0.3,
            (Call("query.parse"), Call("mixer.search"), Call("ads.select", chance=0.8, critical=False)),
        ),
        Operation("front", "GET /suggest", 300, 0.3, (Call("suggest.complete", hit=0.5),)),
        Operation("suggest", "complete", 1_500, 0.5),
        Operation(
            "query",
            "parse",
            1_800,
            0.4,
            (Call("speller.fix", chance=0.3), Call("geo.locate", hit=0.6, critical=False)),
        ),
        Operation("speller", "fix", 4_000, 0.5),
        Operation("geo", "locate", 700, 0.5),
        Operation(
            "mixer",
            "search",
            3_000,
            0.4,
            (
                Call("shards.scan", "par", count=11, tries=2),
                Call("rerank.model"),
                Call("snippets.build", "par", count=4, critical=False),
            ),
        ),
        Operation("shards", "scan", 7_000, 0.7),
        Operation("rerank", "model", 18_000, 0.3),
        Operation("snippets", "build", 2_200, 0.5, (Call("documents.get", hit=0.7),)),
        Operation("documents", "get", 1_600, 0.8),
        Operation("ads", "select", 2_500, 0.5, (Call("auction.run"), Call("budget.spend", "later"))),
        Operation("auction", "run", 5_500, 0.4, (Call("documents.get"), Call("geo.locate"))),
        Operation("budget", "spend", 900, 0.6),
        Operation("reindex", "batch", 250_000, 0.3, (Call("documents.get", count=20),)),
    ),
    {"front": 4, "shards": 12, "mixer": 4, "rerank": 3, "snippets": 5, "documents": 6, "geo": 1},
    {"front.GET /search": 3, "front.GET /suggest": 4},
    batch="reindex.batch",
)


def mesh(rng: np.random.Generator, services: int = 22) -> Graph:
    """A random graph in layers: unequal fan-out, three services shared by all layers, chains of up to six."""
    layer = np.sort(rng.integers(1, 6, services))
    layer[:2] = 0
    shared = ["config", "authz", "kv"]
    names = [f"svc-{chr(97 + i % 26)}{i:02d}" for i in range(services)]
    operations = [Operation(one, "get", float(rng.uniform(200, 900)), 0.4) for one in shared]
    for i, name in enumerate(names):
        deeper = [other for j, other in enumerate(names) if layer[i] < layer[j] <= layer[i] + 2]
        fan = min(len(deeper), int(rng.geometric(0.45)) + int(layer[i] == 0))
        chosen = rng.choice(deeper, fan, replace=False).tolist() if fan else []
        calls = [
            Call(
                f"{target}.handle",
                str(rng.choice(["seq", "seq", "par", "later"])),
                float(rng.choice([1.0, 1.0, 0.4])),
                float(rng.choice([1.0, 1.0, 2.5])),
                tries=int(rng.choice([1, 1, 2])),
                critical=bool(rng.random() < 0.7),
            )
            for target in chosen
        ]
        calls += [Call(f"{one}.get", hit=0.5) for one in shared if rng.random() < 0.3]
        operations.append(
            Operation(
                name,
                "handle",
                float(np.exp(rng.normal(7.6, 0.8))),
                float(rng.uniform(0.2, 0.8)),
                tuple(calls),
            )
        )
    pods = {one: int(rng.choice([1, 2, 3, 4, 6])) for one in (*shared, *names)}
    return _graph(tuple(operations), pods, {f"{names[0]}.handle": 3, f"{names[1]}.handle": 2})


GRAPHS = {"streaming": STREAMING, "ledger": LEDGER, "search": SEARCH}
