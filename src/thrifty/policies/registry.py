"""The registry: the only list of policies, and how a name, a file or an object becomes one."""

from collections.abc import Sequence
from typing import Any

from thrifty.policies import (
    baselines,
    cof,
    cs_balance,
    cs_direct,
    cs_etc,
    cs_exp3,
    cs_ids,
    cs_ts,
    cs_ucb,
    cs_worth,
    elimination,
    one_shot_etc,
)
from thrifty.policies.contract import Policy
from thrifty.policies.files import load_from_file, sources_of
from thrifty.suggestions import did_you_mean

_KNOWN = {
    policy.name: policy
    for policy in (
        cs_ids.POLICY,
        cs_balance.POLICY,
        cs_ucb.POLICY,
        cs_ts.POLICY,
        cs_etc.POLICY,
        one_shot_etc.POLICY,
        cs_direct.POLICY,
        cs_worth.POLICY,
        cof.POLICY,
        cs_exp3.POLICY,
        elimination.PE,
        elimination.PE_CS,
        baselines.UCB1,
        baselines.TS,
        baselines.SCALARISED,
        baselines.BEST_KNOWN,
        baselines.ROUND_ROBIN,
        baselines.CHEAPEST,
        baselines.UNIFORM,
        baselines.ORACLE,
    )
}


DEFAULT_POLICY = "cs-ids"
"""The policy used wherever none is named, as in a router. Nobody knows the horizon there: see docs/decisions/016-cs-balance.md."""


def list_policies() -> dict[str, Policy]:
    """Every policy by its name.

    >>> sorted(list_policies())[:3]
    ['best-known', 'cheapest', 'cof']
    """
    return dict(_KNOWN)


def policy(spec: str | Policy, **settings: Any) -> Policy:
    """The policy a name, a file or an object stands for.

    Parameters
    ----------
    spec : a name such as "cs-etc", a path ending in .py to a file that defines POLICY, or a Policy. Parameters may ride on a
        name or path: "cs-etc:tau=100", "cs-ts:prior=gaussian,a=2"; and so may a forgetting method: "cs-ids+restart",
        "cs-etc:tau=100+window=500".
    settings : parameters by name, in place of or on top of those in `spec`

    >>> policy("cs-etc:tau=100").settings
    {'tau': '100'}

    """
    if isinstance(spec, Policy):
        return spec.configured(**settings) if settings else spec
    if not isinstance(spec, str):
        raise ValueError(f"a policy is a name such as cs-etc, a path ending in .py or a Policy, got {spec!r:.80}")
    head, plus, method = spec.strip().rpartition("+")
    if not plus or not method[:1].isalpha() or method.endswith(".py"):  # 1e+3, or a path with a plus in it
        head, method = spec.strip(), ""
    name, _, riders = head.partition(":")
    found = _from_file(name) if name.endswith(".py") else _known(name)
    configured = found.configured(**_parse(riders, spec), **settings)
    return configured.that_forgets(method) if method else configured


def distinct_policies(specs: Sequence[str | Policy] | str | Policy) -> list[Policy]:
    """The policies that a list stands for. No two have the same label, because a label names a row, a curve and `runs[label]`.

    >>> [each.label for each in distinct_policies(["cs-etc", "cs-etc:tau=100"])]
    ['cs-etc', 'cs-etc:tau=100']
    >>> distinct_policies(["cs-ts", "cs-ts"])
    Traceback (most recent call last):
    ValueError: two policies are called cs-ts: leave one out, or give one of your own another name
    """
    if not isinstance(specs, (str, Policy, list, tuple)):
        raise ValueError(f"policies must be a list of names, files or Policy objects, got {specs!r:.80}")
    chosen = [policy(spec) for spec in ([specs] if isinstance(specs, (str, Policy)) else specs)]
    if not chosen:
        raise ValueError("policies must name at least one policy")
    check_labels([each.label for each in chosen])
    return chosen


def check_labels(labels: Sequence[str]) -> None:
    """A ValueError that names a label which stands twice."""
    twice = next((label for number, label in enumerate(labels) if label in labels[:number]), None)
    if twice is not None:
        raise ValueError(f"two policies are called {twice}: leave one out, or give one of your own another name")


def _known(name: str) -> Policy:
    if name not in _KNOWN:
        hint = did_you_mean(name, _KNOWN, otherwise=f"there are {', '.join(_KNOWN)}.")
        raise ValueError(f"unknown policy {name!r}: {hint} A path ending in .py names one of your own.")
    return _KNOWN[name]


def _from_file(path: str) -> Policy:
    found = load_from_file(path, "POLICY")
    if not isinstance(found, Policy):
        raise ValueError(f"POLICY in {path} must be a thrifty.policies.Policy, got {type(found).__name__}")
    return Policy(**{**found.__dict__, "sources": (*found.sources, *sources_of(path))})


def _parse(riders: str, spec: str) -> dict[str, str]:
    if not riders:
        return {}
    pairs = [rider.partition("=") for rider in riders.split(",")]
    if not all(name and equals and value for name, equals, value in pairs):
        raise ValueError(f"cannot read the parameters of {spec!r}: write them as name:parameter=value,parameter=value")
    return {name.strip(): value.strip() for name, _, value in pairs}
