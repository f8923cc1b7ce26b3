"""What a person wants of a recommendation: the price of quality, and how surely alpha is to be kept."""

from dataclasses import dataclass, replace

EXCHANGE = 3.0
"""How many per cent of cost one per cent of quality is worth, by default."""

CONFIDENCE, COLD_CONFIDENCE = 0.5, 0.7
"""The share of worlds in which a candidate must keep its alpha, by default: with a warm start, and from nothing. With these shares
the choices that were recommended from generated logs kept their alpha in the true world in more than 95% of the logs
(`python benchmarks/recommendation.py`): a candidate knows more about its world than what the worlds are drawn from."""


@dataclass(frozen=True)
class Criteria:
    """What candidates are judged by.

    Parameters
    ----------
    exchange : how many per cent of cost one per cent of quality is worth
    confidence : a candidate that keeps its alpha in a smaller share of the worlds is out; 0 makes alpha a soft limit, so that
        only the exchange counts; None for the default, which is smaller for a warm start

    >>> Criteria(confidence=1.5)
    Traceback (most recent call last):
    ValueError: confidence must be a share from 0 to 1, got 1.5: 0.8 means that a policy keeps its alpha in 80% of the worlds

    """

    exchange: float = EXCHANGE
    confidence: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.exchange < float("inf"):
            raise ValueError(f"exchange must be 0 or more, got {self.exchange}: 3 means that 1% of quality is worth 3% of cost")
        if self.confidence is not None and not 0.0 <= self.confidence <= 1.0:
            raise ValueError(
                f"confidence must be a share from 0 to 1, got {self.confidence}: 0.8 means that a policy keeps its alpha in 80% of "
                "the worlds"
            )

    def settled(self, *, warm: bool) -> "Criteria":
        """The same with a share for the confidence.

        >>> Criteria().settled(warm=True).confidence, Criteria().settled(warm=False).confidence
        (0.5, 0.7)
        """
        return self if self.confidence is not None else replace(self, confidence=CONFIDENCE if warm else COLD_CONFIDENCE)

    @property
    def share(self) -> float:
        """The confidence, as it was given or settled."""
        assert self.confidence is not None
        return self.confidence


CRITERIA = Criteria()
"""The usual criteria."""
