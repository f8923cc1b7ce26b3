"""What is refused is named: the field, what it must be, and what was sent."""

from typing import Any

import pytest
from msgspec.json import Decoder

from thrifty.service.errors import ServiceProblemError
from thrifty.service.lever_messages import AlphaRequest, PreviewRequest, RolloutRequest, UndoRequest
from thrifty.service.messages import ArmRequest, DecisionRequest, KeyRequest, OutcomeRequest, RouterRequest, decoded
from thrifty.service.queries import ChangesQuery, EventsQuery, parsed

DECISIONS: Any = DecisionRequest | list[DecisionRequest]
OUTCOMES: Any = OutcomeRequest | list[OutcomeRequest]
ROUTER = '{"alpha": 0.1, "arms": {"a": 1, "b": 2}, '


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        (AlphaRequest, '{"alpha": 2}', "alpha must be at most 1, got 2"),
        (
            AlphaRequest,
            '{"alpha": 0.1, "version": 9007199254740993}',
            "version must be at most 9007199254740992, got 9007199254740993",
        ),
        (AlphaRequest, '{"alpha": "x"}', "alpha must be a number, got 'x'"),
        (AlphaRequest, '{"alpha": null}', "alpha must be a number, got null"),
        (AlphaRequest, "{}", "alpha is missing"),
        (AlphaRequest, "[]", "what is sent must be an object, got a list"),
        (AlphaRequest, '{"alpha": 0.1, "by": 1}', "there is no 'by'; there are alpha, version"),
        (UndoRequest, '{"position": 1.5}', "position must be a whole number, got 1.5"),
        (UndoRequest, '{"position": true}', "position must be a whole number, got true"),
        (ArmRequest, '{"price": -1}', "price must be at least 0, got -1"),
        (ArmRequest, '{"price": [1]}', "price must be a number or null, got a list"),
        (RolloutRequest, '{"to": "prod"}', "to must be one of shadow, canary, live, got 'prod'"),
        (RolloutRequest, '{"to": "canary", "share": 1}', "share must be at most 0.99, got 1"),
        (PreviewRequest, '{"action": "paint - at `$.x`"}', "alpha, got 'paint - at `$.x`'"),
        (
            KeyRequest,
            '{"name": "x", "role": "boss"}',
            "role must be one or more of decide, outcome, view, admin, separated by commas",
        ),
        (
            KeyRequest,
            '{"name": "x\\u202e"}',
            "name must be 1 to 200 characters, none of them a control or invisible one, got 'x\\u202e'",
        ),
        (KeyRequest, '{"name": ""}', "name must not be empty"),
        (DECISIONS, '{"router": "a/b"}', "router must be 1 to 64 letters, digits, - or _, got 'a/b'"),
        (
            DECISIONS,
            '{"router": "a", "eligible": [{"arm": "x", "cost": "y"}]}',
            "eligible[0].cost must be a number or null, got 'y'",
        ),
        (OUTCOMES, '[{"decision_id": "a.0.1", "reward": 1}, {"reward": 2}]', "[1].reward must be at most 1, got 2"),
        (OUTCOMES, '{"status": "won"}', "status must be one of success, failure, void, got 'won'"),
        (OUTCOMES, "3", "what is sent must be an object or a list, got 3"),
        (RouterRequest, '{"alpha": 0.1, "arms": {"a": 1, "b": "free"}}', "arms['b'] must be a number or null, got 'free'"),
        (RouterRequest, '{"alpha": 0.1, "arms": {"a": 1, "": 2}}', "a name in arms must not be empty"),
        (RouterRequest, '{"alpha": 0.1, "arms": {}}', "arms must not be empty"),
        (RouterRequest, ROUTER + '"mode": "prod"}', "mode must be one of live, canary, shadow, got 'prod'"),
        (RouterRequest, ROUTER + '"mode": 5}', "mode must be text, got 5"),
        (RouterRequest, ROUTER + '"seed": -1}', "seed must be at least 0, got -1"),
        (RouterRequest, ROUTER + '"known": {"outcomes": [{"arm": "a"}]}}', "outcomes is missing in known.outcomes[0]"),
        (RouterRequest, ROUTER + '"holdout": 1e999}', "Number out of range"),
        (RouterRequest, '{"alpha": 0.1, "arms": {"a": "x", "a": 1}}', "Expected `float | null`, got `str`"),
        (AlphaRequest, '{"alpha": "x", "alpha": 0.1}', "alpha must be a number"),
        (AlphaRequest, '{"alpha": "x"} and more', "Expected `float`, got `str`"),
        (AlphaRequest, '{"alpha": ' + "[" * 5000 + "]" * 5000 + "}", "Expected `float`, got `array`"),
    ],
    ids=lambda each: str(each)[:60],
)
def test_a_body_that_is_wrong_is_refused_with_the_field_the_remedy_and_the_value(kind: Any, body: str, told: str) -> None:
    with pytest.raises(ServiceProblemError) as refused:
        decoded(Decoder(kind), body.encode())
    message = refused.value.message
    assert refused.value.status == 422
    assert told in message
    assert "\n" not in message
    assert len(message) < 1000


def test_a_query_that_is_wrong_says_so_in_the_same_words() -> None:
    with pytest.raises(ServiceProblemError, match=r"^limit must be at most 500, got 501$"):
        parsed(ChangesQuery, [("limit", "501")])
    with pytest.raises(ServiceProblemError, match=r"^router must be 1 to 64 letters, digits, - or _, got 'a b'$"):
        parsed(EventsQuery, [("router", "a b")])


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ServiceProblemError) as refused:
        decoded(Decoder(AlphaRequest), b'{"alpha": "' + b"x" * 100_000 + b'"}')
    assert len(refused.value.message) < 200
