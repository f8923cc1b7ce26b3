import os
import subprocess
import sys
from pathlib import Path

import pytest

from thrifty.cli.main import main


def test_policies_are_compiled_into_the_cache(tmp_path: Path) -> None:
    # A process of its own: kernels that another test has loaded would not be written again.
    command = [sys.executable, "-m", "thrifty.cli", "warm", "uniform", "--unknown-costs"]
    ended = subprocess.run(command, env=os.environ | {"THRIFTY_CACHE": str(tmp_path)}, capture_output=True, text=True, check=True)
    lines = ended.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["uniform", "uniform, unknown costs"]
    assert str(tmp_path) in lines[-1]
    assert list(tmp_path.rglob("thrifty_uniform_*.kernel"))


@pytest.mark.parametrize(("policy", "message"), [("oracle", "is given the truth"), ("cs-idz", "did you mean cs-ids?")])
def test_a_policy_that_no_router_can_use_is_refused(policy: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", "uniform", policy]) == 2
    assert message in capsys.readouterr().err
