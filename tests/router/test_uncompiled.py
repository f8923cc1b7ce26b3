import os
import subprocess
import sys
from pathlib import Path


def test_routers_that_forget_and_routers_that_weigh_outcomes() -> None:
    cases = str(Path(__file__).with_name("uncompiled.py"))
    options = ["-n", "0", "-p", "no:cacheprovider", "-W", "ignore:overflow encountered", "-rA"]
    command = [sys.executable, "-m", "pytest", *options, cases]
    done = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 14, done.stdout
