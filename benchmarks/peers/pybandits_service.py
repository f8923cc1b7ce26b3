"""pybandits behind FastAPI: decisions and outcomes over HTTP, kept in memory only. Run by uvicorn from its own environment."""

import itertools

from fastapi import FastAPI
from pybandits.model import BetaCC
from pybandits.smab import SmabBernoulliCC
from pydantic import BaseModel

PRICES = {"a": 0.0079, "b": 0.0062, "c": 0.0041}
bandit = SmabBernoulliCC(actions={name: BetaCC(cost=price) for name, price in PRICES.items()}, subsidy_factor=0.05)
app = FastAPI()


arms: dict[str, str] = {}
numbers = itertools.count()


class Told(BaseModel):
    """An outcome, as `thrifty serve` gets it."""

    decision_id: str
    status: str


class Asked(BaseModel):
    """A request, as `thrifty serve` gets it."""

    router: str
    segment: str = ""


@app.post("/v1/decisions")
async def decide(asked: Asked) -> dict[str, str]:
    (arm, *_), *_ = bandit.predict(n_samples=1)
    decision_id = str(next(numbers))
    arms[decision_id] = arm
    return {"decision_id": decision_id, "arm": arm, "router": asked.router}


@app.post("/v1/outcomes")
async def record(told: Told) -> dict[str, str]:
    bandit.update(actions=[arms.pop(told.decision_id)], rewards=[int(told.status == "success")])
    return {"decision_id": told.decision_id, "result": "recorded"}
