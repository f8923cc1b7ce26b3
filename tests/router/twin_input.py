"""What the state machine of `test_twin.py` may do: requests, outcomes, settings and changes, right and wrong."""

import math
from typing import Any

from hypothesis import strategies as st

from tests.router.twin_rules import Change

ARMS = ("a", "b", "c", "d", "e")
FORGETTING = ("", "", "+window=50", "+discount=0.875", "+restart")
RULES = ("cs-ucb", "cs-ts", "cs-etc", "cs-ids:draws=8")  # few draws: rules run uncompiled, and their choices are only looked at
POLICIES = [f"{rule}{way}" for rule in RULES for way in FORGETTING] + ["pe-cs"]
DEEP = "/".join("p" * 100)
SEGMENTS = ["", "DE", "DE/x", "DE/y", "DE/x/1", "FR/x/y/z", "/".join("q" * 20), *(f"s{n}" for n in range(20))]
WRONG_SEGMENTS = ["DE//x", "/DE", "DE/", " ", "a\n", "x" * 201]
IMPOSSIBLE: list[dict[str, Any]] = [
    {"policy": "oracle"},
    {"policy": "cs-ucb+window=2000000000"},
    {"policy": "nosuch"},
    {"policy": "cs-ucb:nosuch=1"},
    {"policy": "/nonexistent/policy.py"},
    {"policy": "cs-ucb+discount=2"},
    {"alpha": 2.0},
    {"deadline_s": 0.0},
    {"deadline_s": math.nan},
    {"max_segments": 0},
    {"memory_bytes": 1},
    {"holdout": 1.0},
    {"leaning": "yes"},
    {"mode": "odd"},
    {"canary_share": 1.0},
    {"baseline": "nosuch"},
    {"guardrail": "odd"},
    {"newcomer_share": 0.0},
    {"propensity_draws": -1},
    {"seed": -1},
    {"default_outcome": "odd"},
]

# Prices, costs, rewards and times are multiples of 1/4, so that sums do not depend on the order in which they are added up.
prices = st.sampled_from([0.0, 0.25, 0.5, 1.0, None])
arm_names = st.sampled_from(ARMS)
arm_prices = st.dictionaries(arm_names, prices, min_size=2, max_size=5)
times = st.sampled_from([0.25, 0.5, 1.0, 5.0, 9.75, 10.0, 99.0, 100.0, 1000.0])
some_settings = st.fixed_dictionaries(
    {},
    optional={
        "alpha": st.sampled_from([0.0, 0.125, 0.5, 1.0]),
        "policy": st.sampled_from(POLICIES),
        "seed": st.integers(0, 2),
        "deadline_s": st.sampled_from([0.25, 1.0, 10.0, 100.0, 1000.0]),
        "default_outcome": st.sampled_from(["failure", "ignore"]),
        "mode": st.sampled_from(["live", "canary", "shadow"]),
        "canary_share": st.sampled_from([0.125, 0.5, 0.75]),
        "baseline": st.sampled_from(["", "", "a", "e"]),
        "guardrail": st.sampled_from(["canary", "on", "off"]),
        "holdout": st.sampled_from([0.0, 0.25, 0.75]),
        "newcomer_share": st.sampled_from([0.125, 0.5, 1.0]),
        "leaning": st.booleans(),
        "max_segments": st.sampled_from([1, 3, 8, 10_000]),
        "propensity_draws": st.sampled_from([0, 4]),
        "memory_bytes": st.sampled_from([65_536, 131_072]),
    },
)
segments = st.sampled_from([*SEGMENTS, *SEGMENTS, DEEP])
known_outcomes = st.builds(
    lambda segment, arm, n, share: {"segment": segment, "arm": arm, "outcomes": n, "rewards": share * n, "costs": 0.5 * n},
    st.sampled_from(SEGMENTS[:5]),
    arm_names,
    st.sampled_from([1, 4, 40, 400]),
    st.sampled_from([0.0, 0.25, 0.75, 1.0]),
)
numbers = st.integers(0, 7)  # of an arm, among those there are
requests = st.fixed_dictionaries(
    {"segment": segments},
    optional={
        "eligible": st.none()
        | st.lists(numbers, min_size=1, max_size=4)
        | st.dictionaries(numbers, prices, min_size=1, max_size=4),
        "request_id": st.sampled_from([f"r{n}" for n in range(12)]),
        "key": st.sampled_from([f"k{n}" for n in range(12)]),
        "context": st.sampled_from([{}, {"a": 1, "b": [None, "x"]}, {"long": "x" * 2_000}]),
    },
)
wrong_requests = st.one_of(
    st.fixed_dictionaries({"segment": st.sampled_from(WRONG_SEGMENTS)}),
    st.fixed_dictionaries(
        {"eligible": st.sampled_from([[], ["nosuch"], {"a": -1.0}, {"a": math.inf}, {"a": 10**400}, ["a", "nosuch"]])}
    ),
    st.fixed_dictionaries({"request_id": st.sampled_from(["", "x" * 201, "a\n"])}),
    st.fixed_dictionaries({"key": st.sampled_from(["", "x" * 201, "a\n"])}),
    st.fixed_dictionaries({"context": st.sampled_from([{"a": math.nan}, {"a": "x" * 10_000}])}),
)
outcomes = st.builds(
    lambda said, more: {**said, **more},
    st.one_of(
        st.fixed_dictionaries({"reward": st.sampled_from([0, 0.0, 0.25, 0.5, 1, 1.0])}),
        st.fixed_dictionaries({"status": st.sampled_from(["success", "failure", "void"])}),
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "cost": st.sampled_from([0.0, 0.25, 2.0, 3]),
            "arm": numbers,
            "occurred_at": st.sampled_from([-100.0, -1.0, 0.0, 1.0, 100.0]),
        },
    ),
)
wrong_outcomes = st.sampled_from(
    [
        {},
        {"reward": 1.5},
        {"reward": -1},
        {"reward": True},
        {"reward": math.nan},
        {"reward": 1, "status": "success"},
        {"status": "odd"},
        {"reward": 1, "cost": -1.0},
        {"reward": 1, "cost": math.inf},
        {"reward": 1, "arm": "nosuch", "cost": 0.5},
        {"reward": 1, "cost": 10**400},
        {"reward": 1, "occurred_at": math.nan},
        {"reward": 1, "occurred_at": math.inf},
        {"reward": 1, "occurred_at": "noon"},
        {"reward": 1, "occurred_at": True},
    ]
)
changes: st.SearchStrategy[Change] = st.one_of(
    st.tuples(st.sampled_from(["add", "price"]), arm_names, prices),
    st.tuples(st.sampled_from(["resume", "pin", "pause", "unpin", "retire", "reset"]), arm_names, st.none()),
    st.sampled_from(
        [
            ("pin", None, None),
            ("odd", "a", None),
            ("add", "", 1.0),
            ("add", "z", -1.0),
            ("price", "a", math.inf),
            ("pause", "nosuch", None),
            ("unpin", None, None),
            ("reset", None, None),
        ]
    ),
)
places = st.one_of(st.integers(0, 5), st.integers(0, 400))  # of a decision, counted from the newest
ODD_IDS = (
    "{name}.{replica}.0{sequence}",
    "{name}.0{replica}.{sequence}",
    "{name}.+{replica}.{sequence}",
    "{name}.{replica}.0_{sequence}",
    "{name}.{replica}.+{sequence}",
    "{name}.{replica}. {sequence}",
    "{name}.{replica}.{sequence}\n",
    "{name}.{replica}.0x{sequence}",
    "{name}.{replica}.-{sequence}",
    "{name}.{replica}.{arabic}",
    "{name}.{replica}.{upper}",
    "b.{replica}.{sequence}",
    "{name}.1.{sequence}",
    "{name}.{replica}",
    "{name}.{replica}.{sequence}.0",
    "{name}.{replica}.{sequence}ffff",
    "",
    "..",
    "{name}.{replica}.ffffffffffffffffffff",
)
