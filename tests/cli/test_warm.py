from pathlib import Path

import pytest

from thrifty.cli.main import main


def test_policies_are_compiled_into_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path))
    assert main(["warm", "uniform", "--unknown-costs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["uniform", "uniform, unknown costs"]
    assert str(tmp_path) in lines[-1]
    assert list(tmp_path.rglob("thrifty_uniform_*.kernel"))


@pytest.mark.parametrize(("policy", "message"), [("oracle", "is given the truth"), ("cs-idz", "did you mean cs-ids?")])
def test_a_policy_that_no_router_can_use_is_refused(policy: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", "uniform", policy]) == 2
    assert message in capsys.readouterr().err
