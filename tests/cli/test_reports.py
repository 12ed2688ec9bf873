"""The commands that look at runs, run as a user runs them, in this process."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from evalstone import Calibration, ConfigError, write_run
from evalstone.cli.app import app
from evalstone.results.calibration import LabelledScore, keep
from tests.runs import Given, Harm, run_of

ANSWERS = ["1.0", "0.8", "0.4", "skip"] * 10


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data = [{"kind": "x" if number % 4 < 2 else "y"} for number in range(40)]
    write_run(run_of(ANSWERS, [Given(), Harm()], metadata=data), "a")
    write_run(run_of([*ANSWERS[1:], "1.0"], [Given(), Harm()], metadata=data), "b")
    write_run(run_of(ANSWERS, metadata=data), "one")
    return tmp_path


def call(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=typed)


def told(*arguments: str) -> str:
    """The text of the ConfigError that a call ends with."""
    found = call(*arguments).exception
    assert isinstance(found, ConfigError), found
    return str(found)


def test_report_shows_the_run_with_what_is_missing(folder: Path) -> None:
    shown = call("report", "a")
    assert shown.exit_code == 0
    assert "all scorers: 10 of 40 have no score; with them the mean would lie between 0.550 and 0.800" in shown.stdout
    assert "question  How much?" in shown.stdout


def test_report_writes_each_format(folder: Path) -> None:
    assert call("report", "a", "--html", "r.html", "--csv", "r.csv", "--junit", "r.xml").exit_code == 0
    assert (folder / "r.html").read_text().startswith("<!doctype html>")
    assert len(list(csv.reader(io.StringIO((folder / "r.csv").read_text())))) == 81
    assert ElementTree.parse(folder / "r.xml").getroot().tag == "testsuites"
    assert call("report", "a", "--markdown", "-").stdout.startswith("### `in memory`")
    assert json.loads(call("report", "a", "--json", "--by", "kind").stdout)["slices"][0]["means"][0]["field"] == "kind"
    assert "only one of" in told("report", "a", "--json", "--csv", "-")


def test_report_corrects_a_mean_by_labels(folder: Path) -> None:
    rows = "".join(f"s{number},{0.9 if number % 4 == 1 else 0.5}\n" for number in range(1, 40) if number % 4)
    (folder / "l.csv").write_text("id,label\n" + rows)
    shown = call("report", "a", "--labels", "given=l.csv").stdout
    assert "Corrected by human labels: given" in shown
    assert "30 labels and 30 scores" in shown
    assert "several scorers (given, harm)" in told("report", "a", "--labels", "l.csv")
    assert "Corrected by human labels: given" in call("report", "one", "--labels", "l.csv").stdout


def test_report_corrects_shares_by_what_calibrate_kept(folder: Path) -> None:
    assert "has no calibration" in told("report", "a", "--calibrated")
    pairs = tuple(LabelledScore(f"c{n}", n % 2, (float(n % 2 if n % 5 else 1),)) for n in range(80))
    kept = Calibration(
        judge="none",
        scorer=Given().signature,
        name="given",
        scale=1.0,
        lower_is_better=False,
        usual=0.5,
        cut=0.5,
        dataset="labelled",
        version="0",
        pairs=pairs,
    )
    keep(kept, ".evalstone/ledger.db")
    shown = call("report", "a", "--calibrated").stdout
    assert "Share at 0.5 or more, corrected by the calibration: given" in shown
    assert "right on yes  0.833" in shown  # of 48 that people call yes the judge finds 40


def test_report_takes_the_texts_from_data_where_the_folder_has_none(folder: Path) -> None:
    samples = (folder / "a" / "samples.jsonl").rename(folder / "data.jsonl")
    assert "not at hand" in told("report", "a", "--by", "kind")
    assert "Slices: given" in call("report", "a", "--by", "kind", "--data", str(samples)).stdout


def test_compare_shows_differences_slices_and_what_changed(folder: Path) -> None:
    shown = call("compare", "a", "b", "--by", "kind")
    assert shown.exit_code == 0
    assert "B against A" in shown.stdout
    assert "kind=x" in shown.stdout
    assert "Most changed: given, A to B" in shown.stdout
    assert call("compare", "a", "b", "--markdown", "-").stdout.startswith("### Comparison")
    assert json.loads(call("compare", "a", "b", "--json").stdout)["runs"].keys() == {"A", "B"}
    assert call("compare", "a", "b", "--html", "c.html").exit_code == 0
    page = (folder / "c.html").read_text()
    assert page.count('<svg class="difference"') == 2
    assert "script-src 'none'" in page
    assert len(call("compare", "a", "b", "--csv", "-").stdout.splitlines()) == 3
    assert "two runs or more" in told("compare", "a")


def test_compare_says_whether_the_judge_of_anchors_drifted(folder: Path) -> None:
    assert call("compare", "a", "a", "--anchor").exit_code == 0
    assert "to the letter" in told("compare", "a", "b", "--anchor")


@pytest.mark.parametrize(
    ("options", "code", "shown"),
    [
        (["--min", "given=0.5"], 0, "pass"),
        (["--min", "given=0.95"], 1, "fail"),
        (["--min", "given=0.73"], 4, "more samples would decide it"),
        (["--min", "given=0.73", "--inconclusive", "pass"], 0, "inconclusive"),
        (["--min", "given=0.73", "--inconclusive", "fail"], 1, "inconclusive"),
        (["--max", "harm=0.95", "--no-worse", "given=0.3", "--baseline", "b"], 0, "pass"),
        (["--pass-rate", "given@0.7=0.4"], 0, "given >= 0.7"),
    ],
)
def test_the_exit_code_of_a_gate_is_its_verdict(folder: Path, options: list[str], code: int, shown: str) -> None:
    done = call("gate", "a", *options)
    assert done.exit_code == code, done.stdout
    assert shown in done.stdout


def test_a_gate_that_passes_over_failed_outcomes_ends_with_3(folder: Path) -> None:
    write_run(run_of([*ANSWERS, "fail"]), "broken")
    assert call("gate", "broken", "--min", "given=0.4").exit_code == 3
    assert call("gate", "broken", "--min", "given=0.73", "--inconclusive", "pass").exit_code == 3


def test_two_criteria_of_one_scorer_have_names_of_their_own_for_a_build_server(folder: Path) -> None:
    done = call("gate", "a", "--min", "given=0.5", "--no-worse", "given=0.3", "--baseline", "b", "--junit", "-")
    cases = ElementTree.fromstring(done.stdout).iter("testcase")
    assert [case.get("name") for case in cases] == ["given at least 0.5", "given no worse than -0.300"]


def test_a_small_error_is_told_as_it_is(folder: Path) -> None:
    assert "at most 0.1 %" in call("gate", "a", "--min", "given=0.5", "--error", "0.001").stdout


def test_a_run_that_ended_early_says_so_in_every_report(folder: Path) -> None:
    records = folder / "one" / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:20]))
    for form in ([], ["--markdown", "-"], ["--html", "-"]):
        assert "ended before its end: unfinished" in call("report", "one", *form).stdout.replace("\\", "")


def test_a_comparison_tells_the_other_tests_and_what_changed_most_in_each_form(folder: Path) -> None:
    markdown = call("compare", "a", "b", "--markdown", "-", "--most", "1").stdout
    assert "given, A and B\\: Wilcoxon signed\\-rank test" in markdown
    assert markdown.count("  - `s") == 2
    passes = run_of(["1", "0", "0", "0", "1"])
    write_run(passes, "p")
    write_run(run_of(["1", "1", "1", "1", "0"]), "q")
    # of 4 changes 3 are gains: p = 2 (1 + 4) / 2^4
    assert "McNemar p 0.625 (3 gained, 1 lost)" in call("compare", "p", "q").stdout
    row = next(csv.DictReader(io.StringIO(call("compare", "p", "q", "--csv", "-").stdout)))
    assert float(row["mcnemar p"]) == pytest.approx(0.625)
    assert call("compare", "a", "b", "--html", "-", "--most", "1").stdout.count("<details class='change'>") == 2


def test_a_pilot_that_does_not_vary_plans_nothing(folder: Path) -> None:
    write_run(run_of(["0.5"] * 10), "flat")
    assert [line.split()[1:4] for line in call("plan", "flat").stdout.splitlines() if line.startswith("given ")] == [
        ["-", "-", "10"]
    ]


def test_a_gate_is_written_for_build_servers_and_pull_requests(folder: Path) -> None:
    done = call("gate", "a", "--min", "given=0.73", "--junit", "g.xml", "--markdown", "g.md", "--json")
    assert json.loads(done.stdout)["verdict"] == "inconclusive"
    assert ElementTree.parse(folder / "g.xml").getroot()[0].get("skipped") == "1"
    assert (folder / "g.md").read_text().startswith("### evalstone gate: ? inconclusive")
    call("gate", "a", "--min", "given=0.73", "--junit", "g.xml", "--inconclusive", "fail")
    assert ElementTree.parse(folder / "g.xml").getroot()[0].get("failures") == "1"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["gate", "a"], "needs a criterion"),
        (["gate", "a", "--min", "given"], "SCORER=MEAN"),
        (["gate", "a", "--min", "given=high"], "takes a number, not 'high'"),
        (["gate", "a", "--min", "given=nan"], "finite"),
        (["gate", "a", "--pass-rate", "given=0.5"], "SCORER@SCORE=SHARE"),
        (["gate", "a", "--min", "given=0.5", "--inconclusive", "maybe"], "own, pass, fail"),
        (["gate", "a", "--min", "given=0.5", "--min", "given=0.9"], "given is asked for twice: 0.5 and 0.9"),
        (["gate", "a", "--pass-rate", "given@0.5=0.5", "--pass-rate", "given@0.9=0.1"], "asked for twice"),
        (["compare", "a", "a", "--anchor", "--by", "kind"], "without --by"),
        (["run", "d.jsonl", "--min", "rouge_l=0.5", "--min", "rouge_l=0.9"], "asked for twice: 0.5 and 0.9"),
        (["plan", "a", "--difference", "0"], "above 0"),
        (["label", "a", "--to", "l.txt"], ".csv or .jsonl"),
        (["compare", "a", "nowhere"], "nowhere"),
    ],
)
def test_a_wrong_call_says_what_to_mend(folder: Path, arguments: list[str], wanted: str) -> None:
    assert wanted in told(*arguments)


def test_plan_says_how_many_samples_are_needed(folder: Path) -> None:
    assert "samples needed" in call("plan", "a").stdout
    assert json.loads(call("plan", "a", "--baseline", "b", "--json").stdout)["scorers"][0]["paired"] is True


def test_labels_are_asked_for_kept_at_once_and_gone_on_with(folder: Path) -> None:
    first = call("label", "one", "--to", "l.csv", "--next", "5", typed="y\nwhat\n2\n0.5\ns\nn\nq\n")
    assert first.exit_code == 0
    assert "is wanted, not what" in first.stdout
    assert "is wanted, not 2" in first.stdout
    assert "3 labelled now, 3 labels in l.csv" in first.stdout
    rows = (folder / "l.csv").read_text().splitlines()
    assert [row.split(",")[1] for row in rows] == ["label", "yes", "0.5", "no"]
    again = call("label", "one", "--to", "l.csv", "--next", "100", typed="y\n" * 100)
    assert "27 labelled now, 30 labels" in again.stdout
    assert "Every sample that has a score is labelled" in call("label", "one", "--to", "l.csv").stdout


def test_a_run_without_a_score_has_nothing_to_label(folder: Path) -> None:
    write_run(run_of(["skip", "fail"]), "none")
    assert "has a score of given" in told("label", "none", "--to", "l.csv")


def test_the_judges_score_is_not_shown_to_the_one_who_labels(folder: Path) -> None:
    assert "says" not in call("label", "one", "--to", "l.csv", typed="q\n").stdout


def test_hostile_text_is_visible_and_harmless_to_the_one_who_labels(folder: Path) -> None:
    write_run(run_of(["0.5"], question="\x1b[2Jgone\u202e [bold]x"), "h")
    shown = call("label", "h", "--to", "l.csv", typed="q\n").stdout
    assert "\\u001b[2Jgone\\u202e [bold]x" in shown
    assert "\x1b" not in shown
