"""Requests name policies, never files of code, except in the one folder that the configuration allows."""

from pathlib import Path

import pytest

from tests.service.test_http import SMS, running
from thrifty.service.messages import RouterRequest
from thrifty.service.policy_files import checked_policy

TRAP = "import pathlib\npathlib.Path(__file__).with_name('executed').touch()\n"


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A file that leaves a trace when it is executed, in a folder beside the allowed one."""
    (tmp_path / "allowed").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "trap.py").write_text(TRAP)
    return tmp_path / "outside" / "trap.py"


@pytest.mark.parametrize("folder", [False, True])
def test_a_file_outside_of_the_folder_is_never_executed(tmp_path: Path, trap: Path, folder: bool) -> None:
    allowed = str(tmp_path / "allowed") if folder else ""
    (tmp_path / "allowed" / "link.py").symlink_to(trap)
    specs = [
        f"{trap}",
        f" {trap} ",
        f"{trap}+restart",
        f"{trap}:tau=1",
        f"cs-ucb:interval={trap}",
        f"cs-ts:prior={trap},a=2",
        f"cs-ucb:interval= {trap} +window=5",
        "../outside/trap.py",
        "cs-ucb:interval=../outside/trap.py",
        "link.py",
        "nobody.py",
        "x.py+restart/../../outside/trap.py",
        f"{allowed}/../outside/trap.py",
        "cs-ucb:interval=link.py",
    ]
    with running(tmp_path, policy_folder=allowed) as client:
        for spec in specs:
            for name in ("sms", "other"):
                answer = client.put(f"/v1/routers/{name}", json={**SMS, "policy": spec})
                assert (spec, answer.status_code) == (spec, 422)
                assert "policy_folder" in answer.json()["error"]["message"]
            if spec == specs[0]:
                assert client.put("/v1/routers/sms", json=SMS).status_code == 201
    assert not (trap.parent / "executed").exists()
    assert not (tmp_path / "allowed" / "executed").exists()


def test_a_file_in_the_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for place in ("mine.py", "sub/mine.py"):
        (tmp_path / place).write_text("from thrifty.policies import policy\nPOLICY = policy('cs-ucb')\n")
    folder = str(tmp_path)
    for spec, expected in (
        ("mine.py", f"{tmp_path}/mine.py"),
        (f"{tmp_path}/sub/mine.py+restart", f"{tmp_path}/sub/mine.py+restart"),
        ("mine.py:a=1,b=2", f"{tmp_path}/mine.py:a=1,b=2"),
        ("cs-ucb:interval=sub/mine.py,x=1+window=5", f"cs-ucb:interval={tmp_path}/sub/mine.py,x=1+window=5"),
        ("cs-ucb:interval=mine.py+window=5", f"cs-ucb:interval={tmp_path}/mine.py+window=5"),
        ("cs-ids", "cs-ids"),
    ):
        assert checked_policy(spec, folder) == expected
    with running(tmp_path, policy_folder=folder) as client:
        assert client.put("/v1/routers/sms", json={**SMS, "policy": "mine.py"}).status_code == 201
        assert client.get("/v1/routers/sms").json()["policy"] == f"{tmp_path}/mine.py"
        assert client.post("/v1/decisions", json={"router": "sms"}).status_code == 200


def test_a_policy_that_cannot_be_played_is_one_line(tmp_path: Path) -> None:
    head = "from thrifty.policies import Policy, Rule, kernel\n\n@kernel\ndef choose(terms, stats, memory, stream):\n"
    rule = '\n\nPOLICY = Policy("mine", "of a user", Rule(choose))\n'
    for number, (line, said) in enumerate(
        (("return 0.0", "choose returned 0.0 in round 1, which is no whole number"), ("print(1)", "prints in every round"))
    ):
        path = tmp_path / f"mine{number}.py"
        path.write_text(f"{head}    {line}{rule}")
        with running(tmp_path, policy_folder=str(tmp_path)) as client:
            answer = client.put("/v1/routers/sms", json={**SMS, "policy": path.name})
            assert answer.status_code == 422
            assert answer.json()["error"]["message"].startswith(f"mine: {path}:5: {said}")
            assert client.get("/v1/routers/sms").status_code == 404


def test_every_setting_of_a_router_can_be_put() -> None:
    from thrifty.router import Settings

    known = set(Settings.names())
    assert set(RouterRequest.__struct_fields__) == known | {"arms", "known"}
