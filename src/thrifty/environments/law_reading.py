"""Laws read from a description."""

from typing import Any

from thrifty.environments.fees import Fees
from thrifty.environments.laws import Bernoulli, Beta, ClippedGaussian, Deterministic, Law, Resampled, Scaled

LAWS = {law.name: law for law in (Bernoulli, Beta, ClippedGaussian, Deterministic, Resampled)}


def law_from_dict(described: dict[str, Any]) -> Law:
    """The law that `to_dict` described.

    >>> law_from_dict({"law": "beta", "a": 2, "b": 6})
    Beta(a=2, b=6)
    >>> law_from_dict({"law": "fees", "success": 0.3, "failure": {"law": "beta", "a": 1, "b": 9}}).mean_at(0.5)
    0.2
    """
    fields = dict(described)
    name = fields.pop("law", None)
    try:
        if name == Scaled.name:
            return Scaled(law_from_dict(fields["of"]), fields["factor"])
        if name == Fees.name:
            return Fees(**{outcome: law_from_dict(fee) if isinstance(fee, dict) else fee for outcome, fee in fields.items()})
        return LAWS[name](**fields)
    except (KeyError, TypeError):
        known = ", ".join([*LAWS, Scaled.name, Fees.name])
        raise ValueError(f"cannot read the law {described!r}: `law` is one of {known}, with its own parameters beside it") from None
