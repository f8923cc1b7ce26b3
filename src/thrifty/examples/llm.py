"""The language-model world: six models, three kinds of task; a call's cost is random, its quality a score in [0, 1]. Made up."""

from thrifty.examples.specification import Route, Segment, Specification

_MODELS = {  # dollars a call at the usual length, concentration of scores, cost ratio, weight in the log
    "giant": (0.0310, 7.0, 0.7, 3.0),
    "large": (0.0125, 6.0, 0.7, 3.0),
    "large-mini": (0.0048, 6.0, 0.6, 2.0),
    "medium": (0.0021, 5.0, 0.8, 2.0),
    "small": (0.0006, 4.0, 0.8, 1.0),
    "tiny": (0.0001, 3.0, 0.9, 1.0),
}
_TASKS = {  # share of the calls, length beside the usual, mean score by model
    "summarise": (5.0, 1.6, (0.860, 0.850, 0.835, 0.820, 0.770, 0.640)),
    "extract": (3.0, 0.8, (0.925, 0.920, 0.900, 0.855, 0.740, 0.520)),
    "code": (2.0, 1.2, (0.780, 0.735, 0.660, 0.560, 0.380, 0.190)),
}

LLM = Specification(
    name="llm",
    about="Language models: 3 kinds of task, 6 models, scores in [0, 1], random cost per call, one week",
    days=7.0,
    rows=200_000,
    segments=tuple(
        Segment(
            task,
            share,
            tuple(
                Route(
                    model, round(price * length, 6), score, delay_s=2.0, loss=0.0,
                    weight=weight, concentration=concentration, cost_cv=cost_cv,
                )
                for (model, (price, concentration, cost_cv, weight)), score in zip(_MODELS.items(), scores, strict=True)
            ),
        )
        for task, (share, length, scores) in _TASKS.items()
    ),
    names={"segment": "task", "arm": "model", "score": "quality"},
)  # fmt: skip
"""A week of calls, two hundred thousand of them."""
