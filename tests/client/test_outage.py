"""Both clients while a real service is killed and started again."""

import time
from pathlib import Path

from tests.client.conftest import Make
from tests.service.conftest import Service


def test_decisions_go_on_with_the_last_known_good_arm_while_the_service_is_away(make: Make, tmp_path: Path) -> None:
    service = Service(f"sqlite:///{tmp_path / 'service.db'}").start()
    prices = {"dear": 0.3, "good": 0.2, "cheap": 0.1}
    try:
        with make(service.url, fallback=prices, decide_budget_s=1.0, breaker_cooldown_s=0.2) as client:
            client.put_router("sms", prices, 0.05, policy="cs-ucb")
            codes = []
            for _ in range(400):
                choice = client.decide("sms", "DE")
                codes.append(choice.reason["code"])
                client.record(choice.decision_id, 0.0 if choice.arm == "cheap" else 1.0)
            assert "exploit" in codes[200:]
            service.kill()
            away = [client.decide("sms", "DE/vodafone") for _ in range(20)]
            assert {(choice.arm, choice.local, choice.decision_id) for choice in away} == {("good", True, None)}
            service.start()
            time.sleep(0.25)
            back = client.decide("sms", "DE")
            assert not back.local
            assert client.record(back.decision_id, 1.0) == "recorded"
    finally:
        service.stop()
