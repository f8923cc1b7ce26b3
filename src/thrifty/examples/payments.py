"""The payments world: two regions, six card processors, two weeks. Made up.

Prices are dollars a payment, rates the share that succeeds. One processor has an outage, another lowers its fees.
"""

from thrifty.examples.specification import ExampleSegment, Outage, Repricing, Route, Specification

PAYMENTS = Specification(
    name="payments",
    about="Card payments: two regions, six processors, two weeks",
    days=14.0,
    rows=100_000,
    segments=(
        ExampleSegment(
            "domestic",
            7,
            (
                Route("Oak", 0.34, 0.968),
                Route("Maple", 0.31, 0.966),
                Route("Pine", 0.27, 0.961, 0.004),
                Route("Spruce", 0.24, 0.952, -0.006),
                Route("Willow", 0.19, 0.928),
                Route("Yew", 0.15, 0.882),
            ),
        ),
        ExampleSegment(
            "abroad",
            3,
            (
                Route("Oak", 0.92, 0.938),
                Route("Maple", 0.88, 0.925),
                Route("Pine", 0.71, 0.931, -0.004),
                Route("Spruce", 0.66, 0.902),
                Route("Willow", 0.58, 0.851),
            ),
        ),
    ),
    outages=(Outage("Spruce", 0.55, 0.60, 0.10),),
    repricings=(Repricing("Maple", 0.35, 0.70),),
    names={"segment": "region", "arm": "processor", "cost": "fee"},
    success="paid",
)
"""Two weeks of payments, a hundred thousand of them."""
