"""What goes over the wire for levers: changes by people, previews of them, and the changes in the log."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from thrifty.router.preview import PREVIEWS
from thrifty.router.settings import LEAST_SHARE
from thrifty.service.messages import Price, Share, Text, Version


class AlphaRequest(Struct, forbid_unknown_fields=True):
    """The body of a change of alpha; all other settings stay."""

    alpha: Share
    version: Version | None = None


class UndoRequest(Struct, forbid_unknown_fields=True):
    """Which change to undo, by its position in the log."""

    position: Annotated[int, Meta(ge=0, le=2**53)]
    version: Version | None = None


class RolloutRequest(Struct, forbid_unknown_fields=True):
    """Where a rollout is moved; `share` of the keys is routed in a canary, by default as many as before."""

    to: Literal["shadow", "canary", "live"]
    share: Annotated[float, Meta(ge=LEAST_SHARE, le=0.99)] | None = None
    version: Version | None = None


class RolloutGroupBody(Struct):
    """One group of a rollout, as far as the guardrail has come."""

    group: str
    decisions: int
    outcomes: int
    mean: float | None


class FallbackBody(Struct):
    """When the guardrail fell back, and why."""

    at: float
    text: str


class RolloutAnswer(Struct):
    """How far a rollout is; see `thrifty.router.RolloutStatus`."""

    version: int
    mode: Literal["live", "canary", "shadow"]
    share: float
    baseline: str
    guardrail: Literal["canary", "on", "off"]
    alpha: float
    fallback: FallbackBody | None
    routed: RolloutGroupBody | None
    compared: RolloutGroupBody | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    waiting: int
    keys: int | None
    left_out: int
    blocks: int
    outcomes_needed: int | None
    keys_needed: int | None
    days_needed: float | None
    text: str


class PreviewRequest(Struct, forbid_unknown_fields=True):
    """A change to look at before it is made."""

    action: Literal[PREVIEWS]  # type: ignore[valid-type]
    arm: Text | None = None
    price: Price | UnsetType | None = UNSET
    alpha: Share | None = None
    segment: Annotated[str, Meta(max_length=200)] = ""


class Expectation(Struct):
    """What to expect: the arm where all segments take the same, mean quality with a 95% interval, mean cost of a decision."""

    arm: str | None
    quality: float | None
    low: float | None
    high: float | None
    cost: float | None


class PreviewAnswer(Struct):
    """What a change would do. `segments` were looked at, which have the share `covered` of all decisions."""

    text: str
    before: Expectation
    after: Expectation
    undoable: bool
    version: int
    segments: int
    segments_moved: int
    covered: float


class ChangeEntry(Struct):
    """One change in the log. `undo` is what would undo it, or null, and then `why_not` says why."""

    position: int
    at: float
    action: str
    arm: str | None
    price: float | None
    by: str
    text: str
    undoes: int | None
    undo: dict[str, Any] | None
    why_not: str | None
    undone_by: int | None


class ChangeList(Struct):
    """Changes of a router, newest first."""

    changes: list[ChangeEntry]
