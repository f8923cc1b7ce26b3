"""What goes over the wire: requests as they are checked, answers as they are documented."""

from dataclasses import MISSING
from typing import Annotated, Any, Literal

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, ValidationError, defstruct, structs, to_builtins
from msgspec.json import Decoder, decode

from thrifty.described import Described, described
from thrifty.known import MOST_OUTCOMES
from thrifty.problem import MOST_COST
from thrifty.router import Settings
from thrifty.router.known_start import MOST_ENTRIES, KnownStart
from thrifty.service.errors import ServiceProblemError
from thrifty.service.keys import LEAST_DAYS, MOST_DAYS, NAME, ROLES
from thrifty.service.wrong_values import wrong_value

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="1 to 64 letters, digits, - or _")]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
Price = Annotated[float, Meta(ge=0.0, le=MOST_COST)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]

_ROLE = "|".join(ROLES)


class EligibleArm(Struct, forbid_unknown_fields=True):
    """An arm that may be chosen, with a price for this once."""

    arm: Text
    cost: Price | None = None


class DecisionRequest(Struct, forbid_unknown_fields=True):
    """A request for one decision. `context` (10,000 characters at most) is kept in the log; no rule uses it.

    In a canary all requests with the same `key` (a customer, a card) are routed, or none; only 20 bits of a hash of it are kept.
    """

    router: Name
    segment: Annotated[str, Meta(max_length=200)] = ""
    request_id: Text | None = None
    eligible: Annotated[list[EligibleArm], Meta(min_length=1, max_length=1000)] | None = None
    context: dict[str, Any] | None = None
    key: Text | None = None


class OutcomeRequest(Struct, forbid_unknown_fields=True):
    """The outcome of one decision, which is named by its id, or by its router and the request_id it was asked for with."""

    decision_id: Text | None = None
    router: Name | None = None
    reference: Text | None = None
    status: Literal["success", "failure", "void"] | None = None
    reward: Share | None = None
    cost: Price | None = None
    arm: Text | None = None
    occurred_at: Annotated[float, Meta(ge=0.0, le=1e12)] | None = None


class KnownEntry(Struct, forbid_unknown_fields=True):
    """Outcomes of an arm in a segment that are known beforehand: how many, and the sums of their rewards and costs, and squares."""

    arm: Text
    outcomes: Annotated[int, Meta(ge=1, le=MOST_OUTCOMES)]
    rewards: Annotated[float, Meta(ge=0.0, le=float(MOST_OUTCOMES))]
    segment: Annotated[str, Meta(max_length=200)] = ""
    costs: Price | None = None
    reward_squares: Annotated[float, Meta(ge=0.0, le=float(MOST_OUTCOMES))] | None = None
    cost_squares: Price | None = None


class KnownBody(Struct, forbid_unknown_fields=True):
    """What a new router starts with. Rules learn from it; it counts as no decision, outcome or cost of the router."""

    outcomes: Annotated[list[KnownEntry], Meta(min_length=1, max_length=MOST_ENTRIES)]
    source: Text = "known beforehand"


class RouterBody(Struct, forbid_unknown_fields=True):
    """A router as it shall be: prices by arm, null where unknown; `RouterRequest` has the settings too."""

    arms: Annotated[dict[Text, Price | None], Meta(min_length=1, max_length=1000)]
    known: Annotated[KnownBody | None, Meta(description="what a new router starts with; one that is there must have had it")] = None

    def settings(self) -> dict[str, Any]:
        """The settings that the request names."""
        no_settings = ("arms", "known")
        return {name: value for name, value in structs.asdict(self).items() if name not in no_settings and value is not UNSET}

    def start(self) -> KnownStart | None:
        """What a new router starts with."""
        return None if self.known is None else KnownStart.read(to_builtins(self.known))


def _field(each: Described) -> tuple[Any, ...]:
    """A setting of a router as a field of a request."""
    text = Annotated[str, Meta(max_length=200)] if each.default == "" else Text
    kind: Any = Literal[each.words] if each.words else text if each.kind is str else each.kind
    limits: dict[str, Any] = {"description": each.meaning}
    if each.kind in (int, float):
        highest = min(each.high, each.high_over_http)
        limits |= {"gt" if each.above_low else "ge": each.kind(each.low), "le": each.kind(highest)}
    kind = Annotated[kind, Meta(**limits)]
    return (each.name, kind) if each.default is MISSING else (each.name, kind | UnsetType, UNSET)


RouterRequest = defstruct(
    "RouterRequest",
    [_field(each) for each in described(Settings)],
    bases=(RouterBody,),
    forbid_unknown_fields=True,
    kw_only=True,
    namespace={"__doc__": "A router as it shall be: prices by arm, null where unknown, and everything else with a default."},
)
"""The body of PUT /v1/routers/NAME, derived from `thrifty.router.Settings`."""


Version = Annotated[int, Meta(ge=0, le=2**53, description="of the router that the change is meant for; 409 if it has changed")]


class ArmRequest(Struct, forbid_unknown_fields=True):
    """The body of a change to an arm; `price` for add and price: null if it is unknown."""

    price: Price | UnsetType | None = UNSET
    version: Version | None = None


class KeyRequest(Struct, forbid_unknown_fields=True):
    """A key to be made: whom it is for, what it may do (roles separated by commas), and for how many days (else for ever)."""

    name: Annotated[
        str,
        Meta(
            pattern=NAME, min_length=1, max_length=200, description="1 to 200 characters, none of them a control or invisible one"
        ),
    ]
    role: Annotated[
        str,
        Meta(
            pattern=rf"^({_ROLE})(,({_ROLE}))*$(?!\n)",
            max_length=100,
            description=f"one or more of {', '.join(ROLES)}, separated by commas",
        ),
    ] = "decide,outcome"
    days: Annotated[float, Meta(ge=LEAST_DAYS, le=MOST_DAYS)] | None = None


class KeyAnswer(Struct):
    """A new key, which is shown once."""

    name: str
    role: str
    key: str
    expires_at: float | None


class KeyEntry(Struct):
    """A key that was not revoked. Times are seconds since 1970; the last use is known to the minute."""

    name: str
    role: str
    made_at: float | None
    used_at: float | None
    expires_at: float | None
    expired: bool


class KeyList(Struct):
    """All keys of the store that were not revoked."""

    keys: list[KeyEntry]


class AlertEntry(Struct):
    """One alert. `until` and `ending` are null while it lasts."""

    id: int
    rule: str
    router: str
    segment: str
    arm: str
    severity: Literal["page", "warn", "info"]
    since: float
    until: float | None
    text: str
    ending: str | None


class AlertList(Struct):
    """The newest alerts, the newest first."""

    alerts: list[AlertEntry]


class RouterList(Struct):
    """The routers in service, and those that are quarantined, with the reason."""

    routers: list[str]
    quarantined: dict[str, str]


class FieldDrift(Struct):
    """A field that is not as declared: what it is instead, who set it, and when (seconds since 1970)."""

    field: str
    declared: Any
    actual: Any
    by: str | None
    at: float | None


class RouterDrift(Struct):
    """How one router differs from the configuration file. `problem` says why it could not be made as declared."""

    name: str
    state: Literal["as declared", "drifted", "refused", "not declared"]
    differences: list[FieldDrift]
    problem: str | None


class DriftAnswer(Struct):
    """How routers differ from the configuration file; `error` says why the file was refused when it was last read."""

    file: str | None
    reconcile: Literal["report", "enforce"] | None
    read_at: float | None
    error: str | None
    needs_restart: list[str]
    routers: list[RouterDrift]


class ErrorBody(Struct, omit_defaults=True):
    """What went wrong, and where. An internal error has a request_id, under which the log of the service has more."""

    code: str
    message: str
    request_id: str | None = None


class Failure(Struct):
    """Every answer that is not a success."""

    error: ErrorBody


class Estimate(Struct):
    """What was known about an arm."""

    arm: str
    mean: float | None
    outcomes: int
    cost: float
    feasible: bool


class ReasonBody(Struct):
    """Why this arm."""

    code: str
    best_arm: str | None
    floor: float
    estimates: list[Estimate]
    saving: float | None
    text: str


class DecisionAnswer(Struct):
    """A decision. `degraded` when it is not durable because the store is away: it is written when that is back."""

    decision_id: str
    arm: str
    fallbacks: tuple[str, ...]
    propensity: float
    explored: bool
    reason: ReasonBody
    version: int
    repeated: bool
    degraded: bool


class OutcomeAnswer(Struct):
    """What became of an outcome."""

    decision_id: str
    result: Literal["recorded", "corrected", "duplicate", "stale"]


def decoded(decoder: Decoder[Any], body: bytes | bytearray) -> Any:
    """What a body says, or a ServiceProblemError that names the field."""
    try:
        return decoder.decode(body)
    except ValidationError as error:
        raise ServiceProblemError(422, "value", _wrong_in(body, decoder, error)) from None
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceProblemError(400, "json", f"the body must be JSON: {error}") from None


def _wrong_in(body: bytes | bytearray, decoder: Decoder[Any], error: ValidationError) -> str:
    try:
        sent = decode(body)
    except (DecodeError, UnicodeDecodeError, RecursionError):  # what follows is no JSON, or too deep
        return str(error)
    return wrong_value(error, decoder.type, sent)
