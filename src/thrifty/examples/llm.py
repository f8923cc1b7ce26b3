"""The language-model world: six models, three kinds of task. Made up.

The cost of a call is random, its quality a score in [0, 1].
"""

from thrifty.examples.specification import ExampleSegment, Route, Specification

_MODELS = {  # dollars a call of usual length, concentration of scores, cost_cv, weight in the log
    "giant": (0.0310, 7.0, 0.7, 3.0),
    "large": (0.0125, 6.0, 0.7, 3.0),
    "large-mini": (0.0048, 6.0, 0.6, 2.0),
    "medium": (0.0021, 5.0, 0.8, 2.0),
    "small": (0.0006, 4.0, 0.8, 1.0),
    "tiny": (0.0001, 3.0, 0.9, 1.0),
}
_TASKS = {  # share of the calls, length relative to the usual, mean score by model
    "summarise": (5.0, 1.6, (0.860, 0.850, 0.835, 0.820, 0.770, 0.640)),
    "extract": (3.0, 0.8, (0.925, 0.920, 0.900, 0.855, 0.740, 0.520)),
    "code": (2.0, 1.2, (0.780, 0.735, 0.660, 0.560, 0.380, 0.190)),
}


def _segment(task: str, share: float, length: float, scores: tuple[float, ...]) -> ExampleSegment:
    routes = [
        Route(
            model,
            price=round(price * length, 6),
            rate=score,
            delay_s=2.0,
            loss=0.0,
            weight=weight,
            concentration=concentration,
            cost_cv=cost_cv,
        )
        for (model, (price, concentration, cost_cv, weight)), score in zip(_MODELS.items(), scores, strict=True)
    ]
    return ExampleSegment(task, share, tuple(routes))


LLM = Specification(
    name="llm",
    about="Language models: 3 kinds of task, 6 models, scores in [0, 1], random cost per call, one week",
    days=7.0,
    rows=200_000,
    segments=tuple(_segment(task, *described) for task, described in _TASKS.items()),
    names={"segment": "task", "arm": "model", "score": "quality"},
)
"""A week of calls, two hundred thousand of them."""
