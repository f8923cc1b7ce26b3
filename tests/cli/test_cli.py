import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from thrifty.cli.main import main

ARMS = ["--means", "0.5,0.46", "--costs", "1,0", "--alpha", "0.1"]
SMALL = [*ARMS, "--horizon", "300", "--runs", "3", "--seed", "1"]


def test_policies_are_listed_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cs-ids:exchange=1,draws=60")
    assert any(line.startswith("cs-etc:tau=auto,interval=paper,cost_scale=auto ") for line in lines)


def test_one_policy_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "cs-ts"]) == 0
    assert "  prior: the posterior" in capsys.readouterr().out


def test_compare_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "best arm 0, optimal arm 1, floor 0.45" in out
    assert [line.split()[0] for line in out.splitlines()[3:]] == ["cs-balance", "cs-ucb", "cs-ts", "cs-etc"]


def test_compare_plays_the_world_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    world = ["--rounds", "300", "--delay", "exponential:20", "--lost", "0.1", "--deadline", "50", "--batch", "5"]
    rest = ["--runs", "3", "--policies", "cs-ucb+restart,cheapest"]
    assert main(["compare", *ARMS, *world, *rest]) == 0
    out = capsys.readouterr().out
    assert "T = 300, not known to the policies, exponential delay of 20 decisions" in out
    assert "in batches of 5, 0.1 lost, deadline 50, 3 runs" in out
    assert [line.split()[0] for line in out.splitlines()[3:]] == ["cs-ucb+restart", "cheapest"]
    assert main(["compare", *ARMS, *world, *rest, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["told_horizon"] is None
    assert shown["feedback"]["delay"] == {"law": "exponential", "mean": 20.0}
    assert main(["compare", *ARMS, "--rounds", "300", "--policies", "cheapest"]) == 0
    assert "T = 300, not known to the policies, 50 runs" in capsys.readouterr().out


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *SMALL, "--policies", "cs-etc:tau=20,cs-ts:prior=shrunk,sigma_0=2,oracle", "--json"]) == 0
    captured = capsys.readouterr()
    shown = json.loads(captured.out)
    assert captured.err == ""
    assert shown["instance"] == {"means": [0.5, 0.46], "costs": [1.0, 0.0], "alpha": 0.1}
    assert (shown["horizon"], shown["runs"], shown["seed"]) == (300, 3, 1)
    assert [result["policy"] for result in shown["results"]] == ["cs-etc:tau=20", "cs-ts:prior=shrunk,sigma_0=2", "oracle"]
    assert set(shown["results"][0]) == {"policy", "parameters", "quality_regret", "cost_regret", "total_regret", "pulls"}
    same = dict.fromkeys(("mean", "low", "high", "median", "q05", "q25", "q75", "q95"), 20.0)
    assert shown["results"][0]["cost_regret"] == {"sd": 0.0, "se": 0.0, **same}
    assert shown["results"][0]["pulls"] == [20.0, 280.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("arms.json", '{"means": [0.5, 0.46], "costs": [1, 0], "alpha": 0.1}'),
        ("arms.toml", "means = [0.5, 0.46]\ncosts = [1, 0]\nalpha = 0.1\n"),
        ("laws.toml", 'rewards = [{law = "beta", a = 1, b = 1}, 0.46]\ncosts = [1, 0]\nalpha = 0.1\n'),
    ],
)
def test_arms_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert main(["compare", "--instance", str(path), "--horizon", "100", "--runs", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["instance"]["means"] == [0.5, 0.46]


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curves, png, npz = tmp_path / "curves.csv", tmp_path / "fig.png", tmp_path / "runs.npz"
    assert main(["compare", *SMALL, "--csv", str(curves), "--plot", str(png), "--save", str(npz)]) == 0
    assert "cs-etc" in capsys.readouterr().out
    lines = curves.read_text().splitlines()
    assert lines[0].startswith("policy,t,quality_mean,quality_sd,quality_se,quality_q05,quality_q25,quality_median,quality_q75")
    assert lines[0].endswith("total_low,total_high,runs,seed,version,digest,parameters,horizon,feedback,tapes,known,world")
    assert len(lines) == 1 + 4 * 100
    assert png.read_bytes().startswith(b"\x89PNG")
    assert npz.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "--means", "0.5", "--costs", "1", "--alpha", "1.2"], "alpha must be in [0, 1], got 1.2"),
        (
            ["compare", "--means", "0.5,x", "--costs", "1", "--alpha", "0.1"],
            "--means must be numbers separated by commas, got '0.5,x'",
        ),
        (["compare", "--means", "0.5,nan", "--costs", "1,2", "--alpha", "0.1"], "got nan"),
        (["compare", "--means", "0.5,0.4", "--costs", "1", "--alpha", "0.1"], "same length, got 2 means and 1 costs"),
        (["compare", "--means", "0.5", "--costs", "-1", "--alpha", "0.1"], "costs must be in [0, 1e+15], got -1"),
        (["compare", "--means", "0.5", "--costs", "inf", "--alpha", "0.1"], "got inf"),
        (["compare"], "give the arms: --means, --costs and --alpha, or --instance FILE"),
        (["compare", *ARMS, "--horizon", "1"], "horizon must be at least the number of arms"),
        (["compare", *ARMS, "--rounds", "1"], "rounds must be at least the number of arms, got 1 rounds for 2 arms"),
        (
            ["compare", *SMALL, "--rounds", "500"],
            "give --horizon (the policies know it) or --rounds (they do not), not both; got 300 and 500",
        ),
        (["compare", *ARMS, "--delay", "exponental:5"], "unknown delay 'exponental': did you mean exponential:100?"),
        (["compare", *ARMS, "--delay", "100"], "unknown delay '100': write fixed:100, exponential:100, heavy-tailed:100"),
        (["compare", *ARMS, "--delay", "fixed"], "a delay needs its length in decisions, got 'fixed': write fixed:100"),
        (["compare", *ARMS, "--delay", "exponential:soon"], "got 'exponential:soon': write exponential:100"),
        (["compare", *ARMS, "--delay", "fixed:5,6"], "too many numbers, got 'fixed:5,6': write fixed:5"),
        (["compare", *ARMS, "--delay", "fixed:-5"], "a fixed delay must be a number of decisions, 0 or more, got -5"),
        (["compare", *ARMS, "--delay", "heavy-tailed:5,1"], "must be above 1, or it has no mean; got 1"),
        (["compare", *ARMS, "--lost", "1.2"], "lost must be in [0, 1], got 1.2"),
        (["compare", *ARMS, "--deadline", "0"], "deadline must be a whole number of at least 1, got 0"),
        (["compare", *ARMS, "--batch", "0"], "batch must be a whole number of at least 1, got 0"),
        (["compare", *ARMS, "--runs", "0"], "runs must be a whole number of at least 1, got 0"),
        (["compare", *ARMS, "--seed", "-1"], "seed must be a whole number of at least 0, got -1"),
        (["compare", *ARMS, "--policies", "cs-ubc"], "did you mean cs-ucb?"),
        (["compare", *ARMS, "--policies", "cs-etc:tua=1"], "did you mean tau?"),
        (["compare", *ARMS, "--policies", "cs-etc:tau=9000"], "tau must be at most horizon / arms = 5000, got 9000"),
        (["compare", *ARMS, "--policies", ""], "unknown policy ''"),
        (["compare", "--instance", "nowhere.json"], "cannot read nowhere.json"),
        (["compare", "--instance", "arms.yaml"], "must end in .json or .toml"),
        (["compare", "--instance", "a.json", "--means", "1"], "not both"),
        (["compare", *SMALL, "--plot", "/nowhere/fig.png"], "cannot write /nowhere/fig.png"),
        (["compare", *SMALL, "--csv", "/nowhere/curves.csv"], "cannot write /nowhere/curves.csv"),
        (["policies", "cs-ubc"], "did you mean cs-ucb?"),
    ],
)
def test_wrong_input_is_one_line_on_stderr_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_json_and_csv_say_where_the_numbers_came_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    laws, table = tmp_path / "laws.toml", tmp_path / "curves.csv"
    laws.write_text('rewards = [{law = "beta", a = 1, b = 1}, 0.46]\ncosts = [1, 0]\nalpha = 0.1\n')
    rest = ["--horizon", "1e2", "--runs", "2", "--policies", "cs-etc", "--tapes", "--json", "--csv", str(table)]
    assert main(["compare", "--instance", str(laws), *rest]) == 0
    shown = json.loads(capsys.readouterr().out)
    beta, coin = {"law": "beta", "a": 1, "b": 1}, {"law": "bernoulli", "p": 0.46}
    assert shown["world"] == {"rewards": [beta, coin], "costs": [1.0, 0.0], "alpha": 0.1}
    assert (shown["version"], len(shown["digest"]), shown["tapes"]) == (version("thrifty"), 16, True)
    assert shown["results"][0]["parameters"]["tau"] == 14.0  # ceil((100 / 2)^(2/3))
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert {json.loads(row["world"])["rewards"][0]["law"] for row in rows} == {"beta"}
    assert {(row["version"], row["digest"], row["tapes"], row["runs"]) for row in rows} == {
        (shown["version"], shown["digest"], "true", "2")
    }
    assert json.loads(rows[0]["parameters"]) == shown["results"][0]["parameters"]


def test_two_policies_with_one_label_are_refused_wherever_policies_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "from thrifty.policies import Policy, policy\nPOLICY = Policy('mine', 'mine', policy('cheapest').rule)\n"
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text(text)
    two.write_text(text)
    for arguments, label in (
        (["compare", *SMALL, "--policies", "cs-ts,cs-ts"], "cs-ts"),
        (["compare", *SMALL, "--policies", f"{one},{two}"], "mine"),
        (["leaderboard", "--quick", "--enter", "cs-ts"], "cs-ts"),
        (["leaderboard", "--quick", "--enter", f"{one},{two}"], "mine"),
        (["scenario", "payments", "--policies", "cheapest,cheapest"], "cheapest"),
        (["scenario", "payments", "--policies", "best-known,best-known"], "best-known"),
    ):
        assert main(arguments) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"two policies are called {label}: leave one out, or give one of your own another name" in captured.err


def test_a_page_of_the_leaderboard_that_cannot_be_written_is_refused_before_it_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thrifty.leaderboard.stages.play_in_stages", lambda *_, **__: pytest.fail("it was played"))
    (tmp_path / "file").write_text("")
    for out, complaint in ((tmp_path / "file" / "board.md", "is not a folder"), (tmp_path, "name a file in it")):
        assert main(["leaderboard", "--quick", "--out", str(out)]) == 2
        assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--csv", "--plot", "--save"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    monkeypatch.setattr("thrifty.simulation.simulate", lambda *_, **__: pytest.fail("it was played"))
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("")
    for path, complaint in (
        (tmp_path / "folder.png", "it is a folder"),
        (tmp_path / "none" / "a.png", f"there is no folder {tmp_path / 'none'}"),
        (tmp_path / "file" / "a.png", f"there is no folder {tmp_path / 'file'}"),
    ):
        assert main(["compare", *SMALL, flag, str(path)]) == 2
        assert capsys.readouterr().err == f"thrifty compare: cannot write {path}: {complaint}; name another file with {flag}\n"
    assert main(["compare", *SMALL, "--plot", str(tmp_path / "a.bmp")]) == 2
    assert "a picture must end in .png, .svg, .pdf, got" in capsys.readouterr().err


def test_an_export_that_cannot_be_written_is_refused_by_the_name_of_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", f"sqlite:///{tmp_path / 'none.db'}", "--out", str(tmp_path / "none" / "a.csv")]) == 2
    assert f"cannot write {tmp_path / 'none' / 'a.csv'}: there is no folder {tmp_path / 'none'}" in capsys.readouterr().err


def test_a_policy_says_what_to_cite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "cs-etc:tau=100", "--cite"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "% cs-etc: [Sinha2021] Algorithm 2, and Algorithm 3 where costs are unknown"
    assert lines[2] == "@inproceedings{Sinha2021,"
    assert main(["policies", "--cite"]) == 0
    assert capsys.readouterr().out.count("\n@") > 5


def test_bands_of_a_plot_can_be_quantiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("interval", "quantiles"):
        assert main(["compare", *SMALL, "--policies", "cs-ucb", "--plot", str(tmp_path / f"{name}.svg"), "--band", name]) == 0
    capsys.readouterr()
    assert (tmp_path / "interval.svg").read_bytes() != (tmp_path / "quantiles.svg").read_bytes()


@pytest.mark.parametrize("rounds", ["300", "3e2", "3_00", "0.3e3", "300.0"])
def test_a_count_may_be_written_with_an_exponent_or_underscores(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *ARMS, "--policies", "cheapest", "--runs", "1e0", "--horizon", rounds, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["horizon"] == 300


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "--horizon"],
        ["compare", "--rounds"],
        ["compare", "--batch"],
        ["compare", "--deadline"],
        ["compare", "--threads"],
        ["scenario", "sms", "--runs"],
        ["leaderboard", "--seed"],
        ["reproduce", "--workers"],
        ["replay", "log.csv", "--plays"],
        ["recommend", "log.csv", "--worlds"],
        ["example-log", "sms", "--rows"],
        ["repair", "--void"],
    ],
)
@pytest.mark.parametrize("text", ["many", "2.5", "1e-3", "inf", "nan", "1e99", ""])
def test_a_wrong_count_is_named_with_the_remedy(command: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command, text])
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert f"argument {command[-1]}: must be a whole number such as 10000, 10_000 or 1e4, got {text!r}" in message


@pytest.mark.parametrize("arguments", [["nonsense"], [], ["compare", "--horizon", "many"], ["compare", "--colour"]])
def test_what_the_parser_refuses_is_one_line_too(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"means": [0.5]}', '{"means": [0.5], "costs": [1], "alpha": 7}', "\udcff"])
def test_a_file_that_holds_no_instance_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = tmp_path / "arms.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main(["compare", "--instance", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_ctrl_c_stops_and_says_what_was_completed() -> None:
    command = [
        sys.executable,
        "-m",
        "thrifty.cli",
        "compare",
        *ARMS,
        "--policies",
        "cheapest,uniform",
        "--horizon",
        "200000000",
        "--runs",
        "40",
    ]
    main(["compare", *SMALL, "--policies", "cheapest,uniform"])  # the kernels are compiled before the clock starts
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(4.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    completed = re.search(r"stopped; whole runs completed: cheapest (\d+)/40", err)
    assert completed
    assert ("\ncheapest " in out) == (completed[1] != "0")  # the table of the completed runs
    assert "Traceback" not in err


def test_ctrl_c_leaves_a_question_to_a_log_at_once(tmp_path: Path) -> None:
    """Half a minute of games in forty segments, with all threads at work in compiled code."""
    lines = [f"{'abc'[row % 3]},{int(row % 7 > row % 3)},{1 + row % 3},s{row // 3 % 40}" for row in range(24_000)]
    (tmp_path / "log.csv").write_text("\n".join(["arm,reward,cost,segment", *lines]))
    command = [sys.executable, "-m", "thrifty.cli", "recommend", str(tmp_path / "log.csv"), "--segment", "segment"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        time.sleep(3.0)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    assert time.monotonic() - began < 5.0
    assert err == "thrifty recommend: stopped\n"
    assert not list(scratch.glob("thrifty-log-*"))


def test_ctrl_c_without_a_word_says_stopped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("thrifty.cli.policies.run", stop)
    assert main(["policies"]) == 130
    assert capsys.readouterr().err == "thrifty policies: stopped\n"


@pytest.mark.parametrize("command", ["frontier", "replay", "recommend"])
def test_the_folder_is_checked_before_the_log_is_read(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main([command, str(tmp_path / "no.csv"), "--out", str(tmp_path / "file")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"thrifty {command}: cannot write into the folder {tmp_path / 'file'}: ")
    assert error.count("\n") == 1


def test_a_closed_pipe_is_no_error() -> None:
    process = subprocess.run(
        f"{sys.executable} -m thrifty.cli policies | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert process.stdout.startswith("cs-ids")
    assert process.stderr == ""


def test_an_output_that_takes_no_more_is_one_line() -> None:
    process = subprocess.run(
        f"{sys.executable} -m thrifty.cli policies > /dev/full", shell=True, capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert process.stderr == (
        "thrifty policies: cannot write the output: No space left on device; make room there, or write elsewhere\n"
    )


def test_importing_thrifty_does_not_load_numba() -> None:
    script = "import sys, thrifty; thrifty.Instance([0.5], [1.0], 0.1); print('numba' in sys.modules, 'matplotlib' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert shown == "False False\n"


def test_without_matplotlib_the_picture_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    process = subprocess.run(
        [sys.executable, "-m", "thrifty.cli", "compare", *SMALL, "--policies", "cheapest", "--plot", str(tmp_path / "fig.png")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert process.returncode == 2
    assert "pip install 'thrifty[plots]'" in process.stderr
