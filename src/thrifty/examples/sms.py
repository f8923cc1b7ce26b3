"""The SMS world: twelve countries, three to eight aggregators each. Made up; close to each other, as [Sinha2021] says they are.

Prices are dollars a message, rates the share delivered. Over four weeks rates drift, one aggregator has an outage of a day and
a half everywhere and another a bad weekend in one country, one lowers its prices. Receipts are late, and some never come.

The example log, the scenario and the traffic of `thrifty serve --traffic` derive from `SMS`. `SMS_REGIONS` is the small world of
the paper's experiments, in which nothing changes; the results of `thrifty reproduce` rest on its numbers.
"""

from thrifty.examples.specification import ExampleSegment, Outage, Repricing, Route, Specification

SMS = Specification(
    name="sms",
    about="SMS routing: 12 countries, 3 to 8 aggregators each, four weeks",
    days=28.0,
    rows=1_000_000,
    segments=(
        ExampleSegment(
            "BR",
            9,
            (
                Route("Alder", 0.0245, 0.930, weight=4),
                Route("Birch", 0.0228, 0.925, -0.010),
                Route("Cedar", 0.0190, 0.905, weight=2),
                Route("Elm", 0.0162, 0.885, 0.020),
                Route("Fir", 0.0118, 0.760, -0.040, delay_s=20, loss=0.03),
            ),
        ),
        ExampleSegment(
            "DE",
            11,
            (
                Route("Alder", 0.0780, 0.972, weight=5),
                Route("Birch", 0.0735, 0.969),
                Route("Cedar", 0.0702, 0.965, -0.015, weight=2),
                Route("Dogwood", 0.0655, 0.951, 0.010),
                Route("Elm", 0.0610, 0.930, -0.010),
                Route("Hazel", 0.0480, 0.845, delay_s=15, loss=0.02),
            ),
        ),
        ExampleSegment(
            "EG",
            4,
            (
                Route("Dogwood", 0.1420, 0.860, weight=3),
                Route("Ginkgo", 0.1290, 0.835, 0.030, delay_s=12, loss=0.02),
                Route("Ivy", 0.0900, 0.640, delay_s=40, loss=0.05),
            ),
        ),
        ExampleSegment(
            "FR",
            9,
            (
                Route("Alder", 0.0535, 0.965, weight=3),
                Route("Birch", 0.0498, 0.958, 0.005),
                Route("Cedar", 0.0470, 0.941),
                Route("Ginkgo", 0.0425, 0.918, -0.030, weight=0.7),
            ),
        ),
        ExampleSegment(
            "GB",
            10,
            (
                Route("Alder", 0.0400, 0.975, weight=3),
                Route("Birch", 0.0388, 0.974),
                Route("Cedar", 0.0371, 0.968, weight=2),
                Route("Dogwood", 0.0352, 0.962, -0.005),
                Route("Elm", 0.0330, 0.955),
                Route("Fir", 0.0290, 0.925, 0.015),
                Route("Hazel", 0.0255, 0.880, delay_s=15),
                Route("Ivy", 0.0210, 0.790, delay_s=30, loss=0.03),
            ),
        ),
        ExampleSegment(
            "ID",
            8,
            (
                Route("Birch", 0.2200, 0.880, weight=2),
                Route("Dogwood", 0.2080, 0.872, -0.020, weight=2),
                Route("Fir", 0.1850, 0.850),
                Route("Ginkgo", 0.1610, 0.822, 0.020, delay_s=14),
                Route("Ivy", 0.1240, 0.700, delay_s=45, loss=0.05),
            ),
        ),
        ExampleSegment(
            "IN",
            14,
            (
                Route("Alder", 0.0420, 0.910, weight=2),
                Route("Dogwood", 0.0405, 0.906, weight=3),
                Route("Elm", 0.0368, 0.890, 0.015),
                Route("Fir", 0.0310, 0.862, -0.025),
                Route("Ginkgo", 0.0275, 0.848, delay_s=14, loss=0.02),
                Route("Hazel", 0.0230, 0.775, delay_s=25, loss=0.03),
                Route("Ivy", 0.0182, 0.650, delay_s=50, loss=0.05),
            ),
        ),
        ExampleSegment(
            "JP",
            5,
            (
                Route("Alder", 0.0720, 0.982, weight=4),
                Route("Cedar", 0.0675, 0.979),
                Route("Elm", 0.0640, 0.974, weight=2),
                Route("Fir", 0.0590, 0.948, 0.010),
            ),
        ),
        ExampleSegment(
            "MX",
            8,
            (
                Route("Birch", 0.0310, 0.925, weight=2),
                Route("Cedar", 0.0296, 0.921, 0.010),
                Route("Elm", 0.0265, 0.902, weight=2),
                Route("Hazel", 0.0205, 0.865, -0.020, delay_s=15, loss=0.02),
                Route("Ivy", 0.0171, 0.730, delay_s=40, loss=0.04),
            ),
        ),
        ExampleSegment(
            "NG",
            6,
            (
                Route("Dogwood", 0.1650, 0.790, weight=2),
                Route("Fir", 0.1520, 0.776, -0.020),
                Route("Ginkgo", 0.1330, 0.752, delay_s=20),
                Route("Hazel", 0.1105, 0.690, 0.025, delay_s=30, loss=0.03),
                Route("Ivy", 0.0890, 0.560, delay_s=60, loss=0.06),
            ),
        ),
        ExampleSegment(
            "PL",
            6,
            (
                Route("Alder", 0.0335, 0.968, weight=2),
                Route("Birch", 0.0312, 0.966),
                Route("Dogwood", 0.0288, 0.952),
                Route("Elm", 0.0240, 0.930, 0.010, weight=2),
            ),
        ),
        ExampleSegment(
            "US",
            10,
            (
                Route("Alder", 0.0083, 0.955, weight=2),
                Route("Birch", 0.0074, 0.945, weight=3),
                Route("Cedar", 0.0052, 0.900),
            ),
        ),
    ),
    outages=(Outage("Elm", 0.43, 0.48, 0.25), Outage("Birch", 0.75, 0.82, 0.80, segment="DE")),
    repricings=(Repricing("Cedar", 0.60, 0.90),),
    names={"segment": "country", "arm": "aggregator", "cost": "price"},
)
"""Four weeks of messages, a million of them."""

SMS_REGIONS = Specification(
    name="sms-regions",
    about="SMS routing as in the introduction of [Sinha2021]: 4 regions, 2 to 4 aggregators each, no change over time",
    days=28.0,
    rows=100_000,
    segments=(
        ExampleSegment("north", 1, (Route("Alder", 0.0075, 0.94), Route("Birch", 0.0062, 0.92), Route("Cedar", 0.0041, 0.87))),
        ExampleSegment(
            "east",
            1,
            (
                Route("Alder", 0.034, 0.88),
                Route("Dogwood", 0.021, 0.865),
                Route("Elm", 0.016, 0.80),
                Route("Fir", 0.008, 0.62),
            ),
        ),
        ExampleSegment(
            "south",
            1,
            (
                Route("Birch", 0.0520, 0.71),
                Route("Ginkgo", 0.0505, 0.69),
                Route("Hazel", 0.0500, 0.66),
                Route("Ivy", 0.0170, 0.48),
            ),
        ),
        ExampleSegment("islands", 1, (Route("Dogwood", 0.0910, 0.83), Route("Ivy", 0.0480, 0.79))),
    ),
)
"""Four regions whose rates and prices stay the same."""
