"""What a policy is, as digits: its code and its settings, whatever it is called and wherever it stands."""

from dataclasses import astuple, fields
from typing import Any

from thrifty.fingerprint import fingerprint
from thrifty.policies.contract import KernelParameter, Policy, Rule


def policy_fingerprint(policy: Policy) -> str:
    """Sixteen hexadecimal digits of everything that the choices of a policy depend on: rules, parameters, settings, forgetting.

    Something that `thrifty.fingerprint` does not understand, such as an object of a class, gives other digits each time.

    >>> from thrifty.policies import policy
    >>> one, two = policy("cs-etc:tau=100"), policy("cs-etc", tau=200)
    >>> policy_fingerprint(one) == policy_fingerprint(policy("cs-etc:tau=100")), policy_fingerprint(one) == policy_fingerprint(two)
    (True, False)
    """
    parameters = {
        name: (each.options, each.default) if isinstance(each, KernelParameter) else astuple(each)
        for name, each in policy.parameters.items()
    }
    forgetting = tuple(getattr(policy.forgetting, field.name) for field in fields(policy.forgetting))
    rules = _kernels(policy.rule), _kernels(policy.rule_for_unknown_costs)
    return fingerprint(rules, parameters, policy.settle, policy.known_truths, dict(policy.settings), policy.parts(), forgetting)


def _kernels(rule: Rule | None) -> Any:
    return None if rule is None else tuple(getattr(rule, field.name) for field in fields(rule))
