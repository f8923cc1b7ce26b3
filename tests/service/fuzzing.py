"""Random requests to a service, right and wrong: routers, arms, decisions, outcomes and keys. Every number comes from one seed."""

import json
import random
import threading
from typing import Any, NamedTuple
from urllib.parse import quote

ROUTERS = ("sms", "mail", "llm", "ads")
ARMS = ("a", "b", "c", "d", "e")
RULES = (
    "cs-ids",
    "cs-ucb",
    "cs-ts",
    "cs-etc",
    "one-shot-etc",
    "cs-direct",
    "cs-exp3",
    "pe",
    "pe-cs",
    "ucb1",
    "ts",
    "scalarised",
    "best-known",
    "round-robin",
    "cheapest",
    "uniform",
)
FORGETTING = ("", "", "", "+window=50", "+discount=0.9", "+restart", "+window=3")
IMPOSSIBLE = (
    "oracle",
    "cs-ucb+window=2000000000",
    "/etc/passwd",
    "../policy.py",
    "/tmp/nonexistent.py",
    "nosuch",
    "cs-ucb:nosuch=1",
    "",
)
ACTIONS = ("add", "retire", "pause", "resume", "price", "reset", "pin", "unpin")
SEGMENTS = ("", "DE", "DE/x", "DE/y", "FR/x/y/z", "/".join("q" * 20), *(f"s{n}" for n in range(40)))
ODD_SEGMENTS = ("/".join("p" * 100), "DE//x", "/", " ", "\n", "x" * 201)
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1e308,
    -1e308,
    10**30,
    2**63,
    "",
    "x" * 300,
    "\0",
    "\ud800",
    [],
    {},
    [[]],
    {"a": {}},
    "NaN",
    [None],
    {"": None},
)
ODD_IDS = ("{}0", "{} ", "0{}", "{}.0", "{}\n", "", "..", "a.+0.1", "sms.0.0_1", "sms.0.01", "sms.0.\u0661", "sms.0." + "f" * 80)
ADMIN_KEY = "fuzz-admin-key"


class Request(NamedTuple):
    """One request, as bytes go over the wire."""

    method: str
    path: str
    body: bytes
    key: str | None


class Requests:
    """Requests from one seed, with the decisions and keys that the service answered with."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._decided: list[str] = []
        self._keys = [ADMIN_KEY]

    def next(self) -> Request:
        """The next request: one in five is spoiled somehow."""
        with self._lock:
            method, path, body = self._random.choices(
                (self._decide, self._record, self._put, self._change, self._look, self._delete, self._key),
                weights=(40, 30, 8, 8, 8, 1, 1),
            )[0]()
            key = ADMIN_KEY if self._chance(0.95) else self._random.choice([None, "wrong", "\u00e9", *self._keys])
            return Request(method, path, self._encoded(body), key)

    def learn(self, request: Request, answer: Any) -> None:
        """Take decisions and keys from an answer."""
        found = answer if isinstance(answer, list) else [answer]
        with self._lock:
            for each in found:
                if isinstance(each, dict) and request.path == "/v1/decisions" and "decision_id" in each:
                    self._decided.append(str(each["decision_id"]))
                if isinstance(each, dict) and request.path == "/v1/keys" and isinstance(each.get("key"), str):
                    self._keys.append(each["key"])

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _one_of(self, *values: Any) -> Any:
        return self._random.choice(values)

    # -- hot ---------------------------------------------------------------------------------------------------------

    def _decide(self) -> tuple[str, str, Any]:
        many = self._chance(0.3)
        return "POST", "/v1/decisions", [self._asked() for _ in range(self._random.randint(0, 8))] if many else self._asked()

    def _asked(self) -> Any:
        body: dict[str, Any] = {"router": self._one_of(*ROUTERS)}
        if self._chance(0.7):
            body["segment"] = self._one_of(*SEGMENTS) if self._chance(0.97) else self._one_of(*ODD_SEGMENTS)
        if self._chance(0.3):
            body["request_id"] = f"r{self._random.randint(0, 200)}"
        if self._chance(0.1):
            body["key"] = f"k{self._random.randint(0, 50)}" if self._chance(0.9) else self._one_of("", "\n", "x" * 300)
        if self._chance(0.3):
            arms = self._random.sample(ARMS, self._random.randint(1, 4))
            body["eligible"] = [{"arm": arm, "cost": self._price()} if self._chance(0.5) else {"arm": arm} for arm in arms]
        if self._chance(0.1):
            body["context"] = {"hour": self._random.randint(0, 23), "text": "x" * self._one_of(1, 100, 9_000, 20_000)}
        return self._spoiled(body)

    def _record(self) -> tuple[str, str, Any]:
        many = self._chance(0.3)
        return "POST", "/v1/outcomes", [self._said() for _ in range(self._random.randint(0, 8))] if many else self._said()

    def _said(self) -> Any:
        recent = self._decided[-50:] if self._chance(0.7) else self._decided
        known = self._random.choice(recent) if recent else "sms.0.1"
        body: dict[str, Any] = {"decision_id": known if self._chance(0.95) else self._one_of(*ODD_IDS).format(known)}
        if self._chance(0.1):
            body = {"router": self._one_of(*ROUTERS), "reference": f"r{self._random.randint(0, 200)}"}
        body |= self._one_of(
            {"reward": self._random.random()}, {"reward": 1}, {"status": self._one_of("success", "failure", "void")}
        )
        if self._chance(0.5):
            body["cost"] = self._random.random()
        if self._chance(0.1):
            body["arm"] = self._one_of(*ARMS, "nosuch")
        if self._chance(0.1):
            body["occurred_at"] = self._random.uniform(0, 4e9)
        return self._spoiled(body)

    # -- admin -------------------------------------------------------------------------------------------------------

    def _put(self) -> tuple[str, str, Any]:
        """Deadlines are short or long, so that a test can wait until all short ones are over."""
        arms = self._random.sample(ARMS, self._random.randint(1, len(ARMS)))
        body: dict[str, Any] = {"arms": {arm: self._price() for arm in arms}, "alpha": self._one_of(0, 0.05, 0.5, 1)}
        optional = {
            "policy": self._one_of(*RULES) + self._one_of(*FORGETTING) if self._chance(0.9) else self._one_of(*IMPOSSIBLE),
            "deadline_s": self._one_of(0.1, 0.5, 3600, 1e9),
            "default_outcome": self._one_of("failure", "ignore"),
            "mode": self._one_of("live", "live", "canary", "shadow"),
            "canary_share": self._one_of(0.001, 0.5, 0.99),
            "baseline": self._one_of("", *ARMS),
            "guardrail": self._one_of("canary", "on", "off"),
            "holdout": self._one_of(0, 0.1, 0.9),
            "newcomer_share": self._one_of(0.1, 1),
            "leaning": self._one_of(True, False),
            "seed": self._random.randint(0, 3),
            "max_segments": self._one_of(1, 10, 10_000),
            "propensity_draws": self._one_of(0, 5),
            "memory_bytes": self._one_of(65_536, 1_000_000),
        }
        body |= {name: value for name, value in optional.items() if self._chance(0.4)}
        return "PUT", f"/v1/routers/{self._name()}", self._spoiled(body)

    def _price(self) -> float | None:
        return None if self._chance(0.15) else self._random.random()

    def _name(self) -> str:
        return (
            str(self._one_of(*ROUTERS))
            if self._chance(0.97)
            else quote(str(self._one_of("a b", "..", "x" * 65, "\0", "\u00e9", "%")), safe="")
        )

    def _change(self) -> tuple[str, str, Any]:
        if self._chance(0.1):
            moved = {"to": self._one_of("canary", "live", "shadow", "odd"), "share": self._one_of(0.001, 0.5, 2, None)}
            return "POST", f"/v1/routers/{self._name()}/rollout", self._spoiled(moved)
        arm, action = self._one_of(*ARMS, "w"), self._one_of(*ACTIONS) if self._chance(0.97) else "odd"
        body = self._one_of({}, {"price": self._price()})
        return "POST", f"/v1/routers/{self._name()}/arms/{arm}:{action}", self._spoiled(body)

    def _look(self) -> tuple[str, str, Any]:
        router = f"/v1/routers/{self._name()}"
        segment = quote(str(self._one_of(*SEGMENTS, *ODD_SEGMENTS)))
        routers = ("/v1/routers", router, f"{router}/segments", f"{router}/segments/{segment}", f"{router}/rollout")
        paths = (*routers, "/metrics", "/readyz", "/healthz", "/openapi.json", "/docs", "/nosuch", "/v1/keys", "/v1/drift")
        return "GET", self._one_of(*paths), b""

    def _delete(self) -> tuple[str, str, Any]:
        return "DELETE", f"/v1/routers/{self._name()}", b""

    def _key(self) -> tuple[str, str, Any]:
        name = self._one_of("ann", "bob")
        if self._chance(0.5):
            return "DELETE", f"/v1/keys/{name}", b""
        return "POST", "/v1/keys", self._spoiled({"name": name, "role": self._one_of("decide", "outcome", "admin", "view", "odd")})

    # -- spoiling ----------------------------------------------------------------------------------------------------

    def _spoiled(self, body: dict[str, Any]) -> Any:
        if self._chance(0.9) or not body:
            return body
        name = self._one_of(*body)
        return self._one_of(
            {**body, name: self._one_of(*ODD)},
            {key: value for key, value in body.items() if key != name},
            {**body, "nosuch": 1},
            [body],
            self._one_of(*ODD),
        )

    def _encoded(self, body: Any) -> bytes:
        written: bytes = body if isinstance(body, bytes) else json.dumps(body).encode()
        broken = (written[: len(written) // 2], written + b"]", b"\xff" + written, b"[" * 100_000, written.replace(b"0", b"NaN"))
        return written if self._chance(0.97) else self._random.choice(broken)
