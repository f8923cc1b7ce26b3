"""pybandits behind FastAPI: a decision over HTTP, kept in memory and nowhere else. Run by uvicorn from its own environment."""

from fastapi import FastAPI
from pybandits.model import BetaCC
from pybandits.smab import SmabBernoulliCC
from pydantic import BaseModel

PRICES = {"a": 0.0079, "b": 0.0062, "c": 0.0041}
bandit = SmabBernoulliCC(actions={name: BetaCC(cost=price) for name, price in PRICES.items()}, subsidy_factor=0.05)
app = FastAPI()


class Asked(BaseModel):
    """A request, as `thrifty serve` gets it."""

    router: str
    segment: str = ""


@app.post("/v1/decisions")
async def decide(asked: Asked) -> dict[str, str]:
    chosen, *_ = bandit.predict(n_samples=1)
    return {"router": asked.router, "arm": chosen[0]}
