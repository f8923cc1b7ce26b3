"""Every kind of bad log, through the command line: a clear line, the right exit code, every row left out counted."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars
import pytest

from thrifty.cli.main import main
from thrifty.logs import Columns

Run = tuple[int, str, str]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Write a CSV log and run `thrifty replay` on it."""

    def run(text: str | bytes, *flags: str, name: str = "log.csv", policies: str = "none") -> Run:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        code = main(["replay", str(path), "--policies", policies, *flags])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def good(n: int = 400) -> list[str]:
    """Rows of arm, reward, cost, time, id."""
    return [f"{'ab'[i % 2]},{int(i % 5 > 0)},{0.2 if i % 2 == 0 else 0.1},{1_700_000_000 + 60 * i},r{i}" for i in range(n)]


def csv(rows: list[str]) -> str:
    return "\n".join(["arm,reward,cost,sent_at,id", *rows]) + "\n"


def left_out(said: str) -> dict[str, int]:
    return dict(json.loads(said)["left_out"])


def test_a_good_log_is_read_whole(ask: Any) -> None:
    code, out, err = ask(csv(good()), "--time", "sent_at", "--id", "id", "--json")
    assert (code, err) == (0, "")
    body = json.loads(out)
    assert (body["rows"], body["used"], body["left_out"]) == (400, 400, {})


def test_a_misnamed_column_gets_the_nearest_one(ask: Any) -> None:
    code, _, err = ask(csv(good()), "--reward", "rewrd")
    assert code == 2
    assert "no column 'rewrd' for --reward: did you mean 'reward'? there are arm, reward, cost, sent_at, id" in err


def test_a_missing_cost_column_offers_prices(ask: Any) -> None:
    code, _, err = ask("arm,reward\na,1\nb,0\n")
    assert code == 2
    assert "no column 'cost' for --cost" in err
    assert "--prices" in err


def test_text_in_a_number_column_is_named_with_its_row(ask: Any) -> None:
    rows = good()
    rows[6] = "a,1,free,1700000360,r6"
    code, out, _ = ask(csv(rows), "--json")
    assert code == 0
    assert left_out(out) == {"cost is not a number": 1}
    assert "1 of 400 rows left out: cost is not a number (first in row 7, 'free')" in json.loads(out)["notes"]


def test_statuses_without_success_say_what_to_do(ask: Any) -> None:
    code, _, err = ask("arm,reward,cost\na,delivered,1\nb,failed,1\n")
    assert code == 2
    assert "column 'reward' holds words (delivered, failed): name those that are a success with --success" in err


def test_rewards_outside_the_unit_interval_are_left_out_and_counted(ask: Any) -> None:
    rows = good()
    rows[3], rows[4] = "b,1.5,0.1,1700000180,r3", "a,-0.5,0.2,1700000240,r4"
    code, out, _ = ask(csv(rows), "--json")
    assert code == 0
    assert left_out(out) == {"reward outside [0, 1]": 2}
    assert json.loads(out)["used"] == 398


def test_negative_and_infinite_costs_are_left_out_and_counted(ask: Any) -> None:
    rows = good()
    rows[3], rows[5] = "b,1,-0.1,1700000180,r3", "b,1,inf,1700000300,r5"
    code, out, _ = ask(csv(rows), "--json")
    assert code == 0
    assert left_out(out) == {"negative cost": 1, "cost is not a number": 1}


def test_a_cost_beyond_all_bounds_is_left_out_and_counted(ask: Any) -> None:
    rows = good()
    rows[5] = "b,1,1e308,1700000300,r5"
    code, out, err = ask(csv(rows), "--json")
    assert (code, err) == (0, "")
    assert left_out(out) == {"cost above 1e15": 1}
    assert "1 of 400 rows left out: cost above 1e15 (first in row 6, '1e308')" in json.loads(out)["notes"]


def test_times_out_of_order_are_counted_and_kept(ask: Any) -> None:
    rows = good()
    rows[10], rows[11] = rows[11], rows[10]
    code, out, _ = ask(csv(rows), "--time", "sent_at", "--json")
    body = json.loads(out)
    assert code == 0
    assert body["used"] == 400
    assert any("1 rows are earlier than the row before them: taken in the order of the log" in note for note in body["notes"])


def test_times_in_the_future_are_left_out_and_counted(ask: Any) -> None:
    rows = good()
    rows[-1] = "b,1,0.1,4102444800,r399"
    code, out, _ = ask(csv(rows), "--time", "sent_at", "--now", "1800000000", "--json")
    assert code == 0
    assert left_out(out) == {"time in the future": 1}


def test_unreadable_and_missing_times_are_left_out_and_counted(ask: Any) -> None:
    rows = good()
    rows[2], rows[3] = "a,1,0.2,yesterday,r2", "b,1,0.1,,r3"
    code, out, _ = ask(csv(rows), "--time", "sent_at", "--json")
    assert code == 0
    assert left_out(out) == {"time is not readable": 1, "no time": 1}


def test_repeated_ids_are_left_out_and_counted(ask: Any) -> None:
    rows = good()
    rows[8] = "a,0,0.2,1700000480,r7"
    code, out, _ = ask(csv(rows), "--id", "id", "--json")
    assert code == 0
    assert left_out(out) == {"repeated id": 1}
    assert any("(first in row 9, 'r7')" in note for note in json.loads(out)["notes"])


def test_rows_without_an_id_are_kept(ask: Any) -> None:
    rows = good()
    for place, name in ((3, ""), (4, ""), (5, "NULL"), (6, "NULL"), (8, "r7")):
        rows[place] = rows[place].rsplit(",", 1)[0] + f",{name}"
    code, out, _ = ask(csv(rows), "--id", "id", "--json")
    assert code == 0
    assert left_out(out) == {"repeated id": 1}


def test_an_empty_file_and_one_with_a_header_alone_are_refused(ask: Any) -> None:
    code, _, err = ask("")
    assert code == 2
    assert "is empty: it has no header" in err
    code, _, err = ask("arm,reward,cost\n")
    assert code == 2
    assert "the log has a header and no rows" in err


def test_a_truncated_parquet_file_is_refused_with_the_remedy(ask: Any, tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    polars.DataFrame({"arm": ["a", "b"] * 100, "reward": [1.0, 0.0] * 100, "cost": [1.0] * 200}).write_parquet(whole)
    code, _, err = ask(whole.read_bytes()[:-20], name="cut.parquet")
    assert code == 2
    assert "cut off while it was written or copied" in err
    assert err.count("\n") == 1


def test_one_arm_only_is_refused(ask: Any) -> None:
    code, _, err = ask(csv([row.replace("b,", "a,", 1) for row in good()]))
    assert code == 2
    assert "every row that counts used the arm 'a': with one arm only there is nothing to compare; check --arm" in err


def test_a_log_that_is_mostly_unreadable_is_refused_with_the_counts(ask: Any) -> None:
    rows = [row.replace(",0.2,", ",?,") for row in good()]
    code, _, err = ask(csv(rows))
    assert code == 2
    assert "200 of 400 rows cannot be used, and 5% are tolerated (--tolerate)" in err
    assert "cost is not a number (first in row 1, '?')" in err
    assert (
        ask(csv([row.replace(",0.2,", ",?,") if i % 4 == 0 else row for i, row in enumerate(good())]), "--tolerate", "0.3")[0] == 0
    )


def test_missing_outcomes_are_failures_ignored_or_censored(ask: Any) -> None:
    rows = good()
    for place in (0, 398):
        arm, _, *rest = rows[place].split(",")
        rows[place] = ",".join([arm, "", *rest])
    code, out, _ = ask(csv(rows), "--json")
    assert (code, json.loads(out)["used"]) == (0, 400)
    assert any("2 rows have no outcome and count as failures" in note for note in json.loads(out)["notes"])
    _, out, _ = ask(csv(rows), "--missing", "ignore", "--json")
    assert left_out(out) == {"no outcome": 2}
    _, out, _ = ask(csv(rows), "--missing", "censored", "--time", "sent_at", "--deadline", "600", "--json")
    assert left_out(out) == {"outcome not due yet": 10}  # the last ten minutes, answered or not
    code, _, err = ask(csv(rows), "--missing", "censored")
    assert code == 2
    assert "censored needs the time of every row" in err


def test_wrong_propensities_are_left_out_and_counted(ask: Any) -> None:
    rows = [f"{row},0.5" for row in good()]
    rows[0], rows[1], rows[2] = rows[0][:-3] + "0", rows[1][:-3] + "1.2", rows[2][:-3]
    code, out, _ = ask("arm,reward,cost,sent_at,id,p\n" + "\n".join(rows) + "\n", "--propensity", "p", "--json")
    assert code == 0
    assert left_out(out) == {"propensity outside (0, 1]": 2, "no propensity": 1}


def test_a_propensity_of_almost_nothing_is_left_out_and_counted(ask: Any) -> None:
    rows = [f"{row},0.5" for row in good()]
    rows[4] = rows[4][:-3] + "1e-300"
    code, out, err = ask("arm,reward,cost,sent_at,id,p\n" + "\n".join(rows) + "\n", "--propensity", "p", "--json")
    assert (code, err) == (0, "")
    assert left_out(out) == {"propensity below 1e-9": 1}
    assert "1 of 400 rows left out: propensity below 1e-9 (first in row 5, '1e-300')" in json.loads(out)["notes"]


def test_too_many_arms_ask_for_another_column(ask: Any) -> None:
    text = "arm,reward,cost\n" + "".join(f"m{i},1,1\n" for i in range(1200))
    code, _, err = ask(text)
    assert code == 2
    assert "more than 1,000 different values for --arm" in err


def test_wrong_alphas_policies_and_settings_are_one_line(ask: Any) -> None:
    for flags, words in (
        (["--alpha", "0.1,x"], "--alpha must be numbers in [0, 1]"),
        (["--alpha", "1.5"], "--alpha must be numbers in [0, 1]"),
        (["--columns", "nowhere.toml"], "cannot read nowhere.toml"),
        (["--prices", "a=-1,b=2"], "a price must be finite and not negative, got '-1'"),
        (["--prices", "a=1"], "--prices has no price for arm 'b'"),
    ):
        code, _, err = ask(csv(good()), *flags)
        assert code == 2
        assert words in err
        assert err.count("\n") == 1
    code, _, err = ask(csv(good()), policies="cs-idz")
    assert (code, "did you mean cs-ids?" in err) == (2, True)
    code, _, err = ask(csv(good()), policies="oracle")
    assert (code, "needs to know the truth" in err) == (2, True)


def test_thin_overlap_is_refused_with_the_reason(ask: Any) -> None:
    rows = good(2000) + [f"c,1,0.05,{1_700_120_000 + i},c{i}" for i in range(5)]
    code, out, _ = ask(csv(rows), "--time", "sent_at")
    assert code == 0
    assert "no estimate for c in all: only 5 rows, 30 are needed" in out


def test_an_unknown_kind_of_file_and_a_missing_one_are_refused(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ask("x", name="log.xlsx")
    assert code == 2
    assert "a log must end in .csv" in err
    assert main(["replay", "nowhere.csv"]) == 2
    assert "cannot read nowhere.csv: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(("plays", "limit"), [("0", "least 1"), ("-1", "least 1"), ("1000000000000", "most 10000")])
def test_a_policy_is_played_at_least_once_and_not_without_end(ask: Any, plays: str, limit: str) -> None:
    code, _, err = ask(csv(good()), "--plays", plays, policies="cs-ids")
    assert (code, err) == (2, f"thrifty replay: plays must be a whole number of at {limit}, got {plays}\n")


@pytest.mark.parametrize(
    ("column", "value", "flags", "remedy"),
    [
        (1, "93", [], "if these are per cent, divide rewards by 100"),
        (1, "93%", [], "holds per cent (93%): divide by 100, and take off the sign"),
        (2, "-0.1", [], "add refunds and credits to the cost of the request that they belong to"),
        (2, "", [], "name another column with --cost, or give prices by arm with --prices"),
        (3, "31.01.26 10:00", ["--time", "sent_at"], "name how times are written with --time-format, such as '%d.%m.%y %H:%M'"),
        (4, "33.3", ["--propensity", "id"], "if these are per cent, divide propensities by 100"),
        (4, "33.3%", ["--propensity", "id"], "if these are per cent, divide propensities by 100 and take off the sign"),
        (4, "r1", ["--id", "id"], "name a column that is different in every row with --id, or leave --id out"),
    ],
)
def test_a_refused_log_says_what_to_do(ask: Any, column: int, value: str, flags: list[str], remedy: str) -> None:
    rows = [row.split(",") for row in good()]
    text = csv([",".join([*row[:column], value, *row[column + 1 :]]) for row in rows])
    code, _, said = ask(text, *flags)
    assert (code, said.count("\n")) == (2, 1)
    assert remedy in said


def test_an_hour_that_clocks_skip_is_pointed_out(ask: Any) -> None:
    rows = [f"{'ab'[i % 2]},{int(i % 5 > 0)},0.1,2026-03-29 02:{i % 60:02}:{i // 60:02},r{i}" for i in range(400)]
    code, _, said = ask(csv(rows), "--time", "sent_at", "--zone", "Europe/Berlin")
    assert code == 2
    assert "is it an hour that the clocks of Europe/Berlin skip? then name the right --zone" in said


def test_a_file_that_is_not_what_its_name_says_is_named(ask: Any) -> None:
    code, _, said = ask(gzip.compress(csv(good()).encode()))
    assert (code, said.count("\n")) == (2, 1)
    assert "log.csv is a .gz file by its content: let its name end so, as in log.csv.gz" in said


def test_utf_32_with_its_mark_is_read(ask: Any) -> None:
    assert ask(csv(good()).encode("utf-32"))[0] == 0


def test_a_folder_that_is_not_there_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "no-such-folder"]) == 2
    assert "got 'no-such-folder', and there is no such file or folder" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["sep=;", "# exported 2026", "   "])
def test_a_first_line_that_is_no_header_is_named(ask: Any, line: str) -> None:
    code, _, err = ask(f"{line}\n{csv(good())}")
    assert code == 2
    assert f"log.csv: its first line, {line!r}, is no header: remove it" in err


def test_rows_without_an_arm_or_a_time_ask_for_another_column(ask: Any) -> None:
    rows = [row.replace("a,", ",", 1) for row in good()]
    assert "no arm (first in row 1); name another column with --arm" in ask(csv(rows))[2]
    rows = [",".join([*row.split(",")[:3], "", "r"]) for row in good()]
    assert "no time (first in row 1); name another column with --time, or leave it out" in ask(csv(rows), "--time", "sent_at")[2]


@pytest.mark.parametrize("value", ["45321.5", "2026", "-5"])
def test_times_that_may_be_no_seconds_are_pointed_out(ask: Any, value: str) -> None:
    rows = [",".join([*row.split(",")[:3], value, "r"]) for row in good()]
    words = "all times are before March 1973: if they are no seconds since 1970"
    assert words in ask(csv(rows), "--time", "sent_at")[1]
    assert words not in ask(csv(rows), "--time", "sent_at", "--time-format", "s")[1]
    assert words not in ask(csv(good()), "--time", "sent_at")[1]


def test_a_slash_in_one_of_several_segment_columns_is_pointed_out(ask: Any) -> None:
    """a/b with c, and a with b/c, have the same name."""
    rows = [f"{row},{('a/b,c', 'a,b/c')[place % 4 > 1]}" for place, row in enumerate(good())]
    text = csv(rows).replace("id\n", "id,country,route\n", 1)
    code, out, _ = ask(text, "--segment", "country,route", "--id", "id")
    assert code == 0
    assert "1 segments" in out
    assert "400 rows have a / in a column of --segment: columns are joined with /" in out
    assert "have a /" not in ask(text, "--segment", "country", "--id", "id")[1]


def test_a_segment_with_the_name_of_the_pool_is_pointed_out(ask: Any) -> None:
    rows = [f"{row},{('big', 'other', f'z{place}')[place % 3]}" for place, row in enumerate(good())]
    text = csv(rows).replace("id\n", "id,country\n", 1)
    _, out, _ = ask(text, "--segment", "country", "--id", "id", "--rare", "50")
    assert "other; the log has a segment 'other' of its own, which is pooled with them" in out
    _, out, _ = ask(text.replace("other", "others"), "--segment", "country", "--id", "id", "--rare", "50")
    assert "of its own" not in out


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("time = 3", "--time must be the name of a column, got 3: if this is its name, write '3'"),
        ("id = {}", "--id must be the name of a column, got {}"),
        ("cost = false", "--cost must be the name of a column, got False"),
        ("segment = [3]", "--segment must name a column, or several separated by commas, got [3]"),
        ("after = 3", "--after must name a column, or several separated by commas, got 3: if this is its name, write '3'"),
        ("success = [200]", '--success must be statuses in quotes such as ["delivered", "200"], got (200,)'),
        ("success = true", '--success must be statuses in quotes such as ["delivered", "200"], got True'),
        ("zone = 3", "--zone must be the name of a time zone such as Europe/Berlin, got 3"),
        ("time_format = 3", "--time-format must be a pattern such as '%d.%m.%y %H:%M', or day-first"),
        ("separator = 3", "--separator must be one sign such as"),
        ("encoding = 3", "--encoding must be an encoding such as latin-1, cp1252 or utf-16, got 3"),
        ("deadline_s = true", "--deadline must be a positive number of seconds, got True"),
        ("rare = true", "--rare must be a number of rows, got True"),
        (
            "prices = [1]",
            "--prices must be a table or text such as 'Alder=0.0079,Birch=0.0041', or the path of a CSV file, got [1]",
        ),
        ("fees = 3", "--fees must be a table or text such as 'success=0.30,failure=0.05', or the path of a CSV file, got 3"),
        ("tolerate = 0.1", "has no setting 'tolerate': there are arm, reward"),
    ],
)
def test_a_setting_of_the_wrong_type_is_one_line(ask: Any, tmp_path: Path, setting: str, words: str) -> None:
    (tmp_path / "columns.toml").write_text(setting)
    code, _, err = ask(csv(good()), "--columns", str(tmp_path / "columns.toml"))
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


def test_settings_from_python_are_checked_as_those_of_a_file() -> None:
    with pytest.raises(ValueError, match=r"--prices must be made by PriceList.load, such as PriceList.load\('Alder=0.0079"):
        Columns(prices={"Alder": 1.0})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"--deadline must be a positive number of seconds, got None"):
        Columns(deadline_s=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("statuses", ["", ","])
def test_success_without_a_status_is_refused(ask: Any, statuses: str) -> None:
    assert "--success names no status: name those that are a success" in ask(csv(good()), "--success", statuses)[2]


def test_a_pattern_that_the_shell_replaced_by_files_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(csv(good()))
    with pytest.raises(SystemExit):
        main(["frontier", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")])
    err = capsys.readouterr().err
    assert "b.csv: several files are one log as a folder, or as a pattern in quotes such as 'logs/*.csv'" in err
    assert err.count("\n") == 1


def test_a_date_and_time_in_one_number_asks_for_the_format(ask: Any) -> None:
    rows = [",".join([*row.split(",")[:3], "20260131100000", "r"]) for row in good()]
    assert "name it with --time-format %Y%m%d%H%M%S" in ask(csv(rows), "--time", "sent_at")[2]
    assert ask(csv(rows), "--time", "sent_at", "--time-format", "%Y%m%d%H%M%S")[0] == 0


def test_not_a_number_in_json_lines_is_named_with_its_line(ask: Any) -> None:
    code, _, err = ask('{"arm": "a", "reward": 1, "cost": 1}\n{"arm": "b", "reward": NaN, "cost": 1}\n', name="log.jsonl")
    assert code == 2
    assert "line 2 holds NaN, which is not valid JSON: write null, or leave the name out" in err
