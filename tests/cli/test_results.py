"""The commands that look at runs, run as a user runs them, in this process."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evalstone import audit, evaluate, load_labels, read_run, write_run
from evalstone.cli.annotate import CHROME, fitted
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.ledger.labels import labels
from evalstone.ledger.store import Ledger
from evalstone.results.calibration import Calibration, LabeledScore
from evalstone.results.saved_calibrations import calibration_file, save_calibration
from tests.cli.conftest import Evalstone
from tests.runs import Given, Harm, run_of

ANSWERS = ["1.0", "0.8", "0.4", "skip"] * 10


@pytest.fixture(scope="session")
def saved_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs over the same samples: a, b, and one with a single scorer."""
    folder = tmp_path_factory.mktemp("runs")
    data = [{"kind": "x" if number % 4 < 2 else "y"} for number in range(40)]
    write_run(run_of(ANSWERS, [Given(), Harm()], metadata=data), folder / "a")
    write_run(run_of([*ANSWERS[1:], "1.0"], [Given(), Harm()], metadata=data), folder / "b")
    write_run(run_of(ANSWERS, metadata=data), folder / "one")
    return folder


@pytest.fixture
def folder(saved_runs: Path, tmp_path: Path, evalstone: Evalstone) -> Path:
    """The saved runs, in the test's folder."""
    return shutil.copytree(saved_runs, tmp_path, dirs_exist_ok=True)


Told = Callable[..., str]


@pytest.fixture
def told(evalstone: Evalstone) -> Told:
    """The error that a command ends with."""

    def call(*arguments: str) -> str:
        done = evalstone(*arguments)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done
        return done.stderr

    return call


def test_report_shows_the_run_with_what_is_missing(folder: Path, evalstone: Evalstone) -> None:
    shown = evalstone("report", "a")
    assert shown.returncode == 0
    assert "10 of 40 samples" in shown.stdout
    assert "between 0.550 and 0.800" in shown.stdout
    assert "question  How much?" in shown.stdout
    assert "\n\n\n" not in shown.stdout


def test_report_writes_each_format(folder: Path, evalstone: Evalstone, told: Told) -> None:
    assert evalstone("report", "a", "--html", "r.html", "--csv", "r.csv", "--junit", "r.xml").returncode == 0
    assert (folder / "r.html").read_text().startswith("<!doctype html>")
    assert len(list(csv.reader(io.StringIO((folder / "r.csv").read_text())))) == 81
    assert ElementTree.parse(folder / "r.xml").getroot().tag == "testsuites"
    assert evalstone("report", "a", "--markdown", "-").stdout.startswith("### in memory")
    assert (
        json.loads(evalstone("report", "a", "--json", "--slice-by", "kind").stdout)["slices"][0]["means"][0]["field"]
        == "kind"
    )
    assert "only one of" in told("report", "a", "--json", "--csv", "-")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["report", "a"], "given"),
        (["compare", "a", "b"], "paired by sample"),
        (["drift", "a", "a"], "drift"),
        (["gate", "a", "--min", "given=0.1"], "Gate: "),
        (["power", "a"], "samples needed"),
    ],
)
def test_a_command_that_writes_a_page_shows_its_result_too(
    folder: Path, evalstone: Evalstone, command: list[str], shown: str
) -> None:
    alone = evalstone(*command).stdout
    assert shown in alone
    done = evalstone(*command, "--html", "p.html", "--markdown", "p.md")
    assert done.stdout == f"{alone}\nSaved: p.html, p.md\n"
    assert evalstone(*command, "--html", "p.html", "--markdown", "-").stdout.startswith("### ")


def test_report_corrects_a_mean_by_labels(folder: Path, evalstone: Evalstone, told: Told) -> None:
    rows = "".join(f"s{number},{0.9 if number % 4 == 1 else 0.5}\n" for number in range(1, 40) if number % 4)
    (folder / "l.csv").write_text("id,label\n" + rows)
    shown = evalstone("report", "a", "--labels", "given=l.csv").stdout
    assert "human labels: given" in shown
    assert "30 labels and 30 scores" in shown
    assert re.search(r"labels by \S+ [^(]*\(95% CI ".replace(" ", r"\s+"), shown)
    assert "given, harm" in told("report", "a", "--labels", "l.csv")
    assert "human labels: given" in evalstone("report", "one", "--labels", "l.csv").stdout


def test_report_corrects_shares_by_what_calibrate_kept(folder: Path, evalstone: Evalstone, told: Told) -> None:
    assert "calibrated (judge none)" in told("report", "a", "--calibrated")
    pairs = tuple(LabeledScore(f"c{n}", n % 2, (float(n % 2 if n % 5 else 1),)) for n in range(80))
    kept = Calibration(
        judge="none",
        scorer="given",
        signature=Given().signature,
        scale=1.0,
        lower_is_better=False,
        default_threshold=0.5,
        label_threshold=0.5,
        dataset_name="labelled",
        dataset_version="0",
        pairs=pairs,
    )
    save_calibration(kept, ".evalstone/ledger.db")
    shown = evalstone("report", "a", "--calibrated").stdout
    assert "Pass rate at 0.5" in shown
    assert "the calibration: given" in shown
    assert "sensitivity (TPR)  0.833" in shown  # of 48 that people call yes the judge finds 40
    chance = replace(kept, pairs=tuple(LabeledScore(f"c{n}", n % 2, (float(n // 2 % 2),)) for n in range(80)))
    save_calibration(replace(chance, signature=Harm().signature, scorer="harm"), ".evalstone/ledger.db")
    both = evalstone("report", "a", "--calibrated")
    why = "its judge is not shown to be better than chance (AUROC 0.500, 95% CI 0.377 to 0.623)"
    assert re.fullmatch(rf".* calibration of harm [^:]*: {re.escape(why)}\.\n", both.stderr)
    assert both.stdout == shown
    assert save_calibration(chance, ".evalstone/ledger.db") is None
    calibration_file(kept, ".evalstone/ledger.db").unlink()
    assert save_calibration(chance, ".evalstone/ledger.db") is not None
    assert re.search(rf"calibration of given [^:]*: {re.escape(why)}", told("report", "a", "--calibrated"))


def test_report_takes_the_texts_from_data_where_the_folder_has_none(
    folder: Path, evalstone: Evalstone, told: Told
) -> None:
    samples = (folder / "a" / "samples.jsonl").rename(folder / "data.jsonl")
    assert "are not available" in told("report", "a", "--slice-by", "kind")
    assert "Slices: given" in evalstone("report", "a", "--slice-by", "kind", "--data", str(samples)).stdout


def test_compare_shows_differences_slices_and_what_changed(folder: Path, evalstone: Evalstone, told: Told) -> None:
    shown = evalstone("compare", "a", "b", "--slice-by", "kind")
    assert shown.returncode == 0
    assert "each run minus A" in shown.stdout
    assert "kind=x" in shown.stdout
    assert "changed: given, A to B" in shown.stdout
    assert evalstone("compare", "a", "b", "--markdown", "-").stdout.startswith("### Comparison")
    assert json.loads(evalstone("compare", "a", "b", "--json").stdout)["runs"].keys() == {"A", "B"}
    assert evalstone("compare", "a", "b", "--html", "c.html").returncode == 0
    page = (folder / "c.html").read_text()
    assert page.count('<svg class="difference"') == 2
    assert "script-src 'none'" in html.unescape(page)
    assert len(evalstone("compare", "a", "b", "--csv", "-").stdout.splitlines()) == 3
    assert "two or more" in told("compare", "a")


@pytest.mark.usefixtures("folder")
def test_compare_names_its_options_where_they_are_wrong(evalstone: Evalstone) -> None:
    for option, value, problem in (
        ("--confidence", "95", "must be between 0 and 1, such as 0.95, not 95.0"),
        ("--correction", "x", "takes holm, fdr_bh or none, not 'x'"),
    ):
        done = evalstone("compare", "a", "b", option, value)
        assert (done.returncode, done.stderr) == (2, f"evalstone: {option} {problem}\n")


def test_compare_says_whether_the_judge_of_anchors_drifted(folder: Path, evalstone: Evalstone, told: Told) -> None:
    assert evalstone("drift", "a", "a").returncode == 0
    assert "the same samples" in told("drift", "a", "b")


@pytest.mark.parametrize(
    ("options", "code", "shown"),
    [
        (["--min", "given=0.4"], 0, "pass"),
        (["--min", "given=0.95"], 1, "fail"),
        (["--min", "given=0.5"], 4, "10 missing scores may decide it"),
        (["--min", "given=0.5", "--missing", "ignore"], 0, "pass"),
        (["--min", "given=0.7", "--missing", "ignore"], 4, "would decide it at the next look (--look 2)"),
        (["--min", "given=0.7333", "--missing", "ignore"], 4, "the estimate is too close to the threshold to decide"),
        (["--min", "given=0.73", "--inconclusive", "pass"], 0, "? inconclusive, which counts as a pass"),
        (["--min", "given=0.73", "--inconclusive", "fail"], 1, "? inconclusive, which counts as a fail"),
        (["--max", "harm=0.95", "--max-regression", "given=0.6", "--baseline", "b"], 0, "pass"),
        (["--max-difference", "given=0.6", "--max-change", "given=0.9", "--baseline", "b"], 0, "within ±0.600"),
        (["--pass-rate", "given@0.7=0.3"], 0, "given >= 0.7"),
        (["--require", "given"], 1, "10 of 30"),
    ],
)
def test_the_returncode_of_a_gate_is_its_verdict(
    folder: Path, options: list[str], code: int, shown: str, evalstone: Evalstone
) -> None:
    done = evalstone("gate", "a", *options)
    assert done.returncode == code, done.stdout
    assert shown in done.stdout


def test_the_pass_rate_that_the_help_shows_works(folder: Path, evalstone: Evalstone) -> None:
    example = re.findall(r"(faithfulness@\S+=[\d.]*\d)", " ".join(evalstone("gate", "--help").stdout.split()))
    assert example == ["faithfulness@0.8=0.9"]
    done = evalstone("gate", "a", "--pass-rate", example[0].replace("faithfulness", "given"))
    assert (done.returncode, "given >= 0.8" in done.stdout) == (1, True)


def test_a_gate_that_passes_over_failed_outcomes_ends_with_5(folder: Path, evalstone: Evalstone) -> None:
    write_run(run_of([*ANSWERS, "fail"]), "broken")
    assert evalstone("gate", "broken", "--min", "given=0.4").returncode == 5
    assert evalstone("gate", "broken", "--min", "given=0.73", "--inconclusive", "pass").returncode == 5


def test_two_criteria_of_one_scorer_have_names_of_their_own_for_a_build_server(
    folder: Path, evalstone: Evalstone
) -> None:
    done = evalstone(
        "gate", "a", "--min", "given=0.5", "--max-regression", "given=0.3", "--baseline", "b", "--junit", "-"
    )
    cases = ElementTree.fromstring(done.stdout).iter("testcase")
    bar, change = (case.get("name", "") for case in cases)
    assert bar == "given at least 0.5"
    assert change.startswith("given, difference")
    assert change.endswith(" at least -0.300")


def test_a_small_error_is_told_as_it_is(folder: Path, evalstone: Evalstone) -> None:
    assert "at most 0.1%" in evalstone("gate", "a", "--min", "given=0.5", "--alpha", "0.001").stdout


def test_a_run_that_ended_early_says_so_in_every_report(folder: Path, evalstone: Evalstone) -> None:
    records = folder / "one" / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:20]))
    for form in ([], ["--markdown", "-"], ["--html", "-"]):
        assert "ended early: unfinished" in evalstone("report", "one", *form).stdout.replace("\\", "")


def test_a_comparison_tells_what_changed_most_in_each_form(folder: Path, evalstone: Evalstone) -> None:
    markdown = evalstone("compare", "a", "b", "--markdown", "-", "--top", "1").stdout
    assert "corrected for" in markdown
    assert markdown.count("\n- `s") == 2
    passes = run_of(["1", "0", "0", "0", "1"])
    write_run(passes, "p")
    write_run(run_of(["1", "1", "1", "1", "0"]), "q")
    # of 4 changes 3 are gains: p = 2 (1 + 4 / 2) / 2^4
    assert re.search(r"0\.375 +3/1/1", evalstone("compare", "p", "q").stdout)
    row = next(csv.DictReader(io.StringIO(evalstone("compare", "p", "q", "--csv", "-").stdout)))
    assert (float(row["p"]), row["test"]) == (pytest.approx(0.375), "McNemar's test, mid-p")
    assert evalstone("compare", "a", "b", "--html", "-", "--top", "1").stdout.count('<details class="sample"') == 2


def test_a_sample_size_is_written_as_html_and_markdown(folder: Path, evalstone: Evalstone) -> None:
    assert evalstone("power", "a", "--html", "p.html", "--markdown", "p.md").returncode == 0
    assert "samples needed" in (folder / "p.html").read_text()
    assert (folder / "p.md").read_text().startswith("### Sample size")


def test_a_pilot_that_does_not_vary_plans_for_the_upper_end_of_the_range(folder: Path, evalstone: Evalstone) -> None:
    write_run(run_of(["0.5"] * 10), "flat")
    said = evalstone("power", "flat").stdout
    assert [line.split()[2:4] for line in said.splitlines() if line.startswith("given ")] == [["125", "to"]]
    assert "values don't vary" in said


def test_a_gate_names_the_options_of_the_command_line(folder: Path, evalstone: Evalstone, told: Told) -> None:
    write_run(run_of(["1.0"] * 20 + ["fail"] * 4), "broken")
    done = evalstone("gate", "broken", "--min", "given=0.73")
    assert "next look (--look 2)" in done.stdout
    assert "; --missing ignore leaves" in done.stdout
    flags = "(--min, --max, --pass-rate, --max-regression, --max-difference, --require)"
    assert flags in told("gate", "a")
    assert "--max-regression requires --baseline\n" in told("gate", "a", "--max-regression", "given=0.1")
    assert "; use --min given=0.1" in told("gate", "a", "--max", "given=0.1")


def test_a_gate_is_written_for_build_servers_and_pull_requests(folder: Path, evalstone: Evalstone) -> None:
    done = evalstone("gate", "a", "--min", "given=0.73", "--junit", "g.xml", "--markdown", "g.md", "--json")
    assert json.loads(done.stdout)["verdict"] == "inconclusive"
    assert ElementTree.parse(folder / "g.xml").getroot()[0].get("skipped") == "1"
    assert (folder / "g.md").read_text().startswith("### evalstone gate: ? inconclusive")
    evalstone("gate", "a", "--min", "given=0.73", "--junit", "g.xml", "--inconclusive", "fail")
    assert ElementTree.parse(folder / "g.xml").getroot()[0].get("failures") == "1"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["gate", "a"], "needs a criterion"),
        (["gate", "a", "--min", "given"], "SCORER=NUMBER"),
        (["gate", "a", "--min", "given=high"], "takes a number, not 'high'"),
        (["gate", "a", "--min", "given=nan"], "finite"),
        (["gate", "a", "--pass-rate", "given=0.5"], "such as faithfulness@0.8=0.9, not 'given=0.5'"),
        (["gate", "a", "--pass-rate", "given@0.5"], "--pass-rate takes SCORER@SCORE=SHARE"),
        (["gate", "a", "--min", "given=-1"], "--min of given must be in [0, 1], not -1"),
        (
            ["gate", "a", "--max-regression", "given=2", "--baseline", "b"],
            "--max-regression of given must",
        ),
        (["gate", "a", "--pass-rate", "given@0.5=1.5"], "--pass-rate given takes a share from 0 to 1, not 1.5"),
        (["gate", "a", "--min", "given=0.5", "--inconclusive", "maybe"], "report, pass or fail"),
        (["gate", "a", "--min", "given=0.5", "--min", "given=0.9"], "--min names given twice: 0.5 and 0.9"),
        (["gate", "a", "--pass-rate", "given@0.5=0.5", "--pass-rate", "given@0.9=0.1"], "names given twice"),
        (
            ["gate", "a", "--min", "given=0.9", "--min", f"{Given().signature}=0.1"],
            "--min names given twice: as given and as given(",
        ),
        (["gate", "a", "--max", "harm=0.1", "--max", f"{Harm().signature}=0.9"], "--max names harm twice"),
        (
            ["gate", "a", "--pass-rate", "given@0.5=0.5", "--pass-rate", f"{Given().signature}@0.5=0.1"],
            "--pass-rate names given twice",
        ),
        (["power", "a", "--difference", "0"], "--difference must be above 0, not 0"),
        (["power", "a", "-d", "nan"], "--difference takes a finite number, 0 or more, not 'nan'"),
        (["power", "a", "--power", "1.5"], "--power takes a finite number from 0 to 1, not '1.5'"),
        (["compare", "a", "b", "--confidence", "1.5"], "--confidence must be between 0 and 1, such as 0.95, not 1.5"),
        (["compare", "a", "b", "--confidence", "1e400"], "--confidence takes a finite number, not '1e400'"),
        (["runs", "--limit"], "evalstone: option '--limit' requires an argument"),
        (["drift"], "evalstone: missing argument 'BEFORE'; see evalstone drift --help"),
        (["runs", "--limit", "-1"], "--limit takes a whole number, 1 or more, not '-1'"),
        (["runs", "--limit", "1.5"], "--limit takes a whole number, 1 or more, not '1.5'"),
        (["report", ""], 'no results folder ""'),
        (["report", "r1", "--ledger", ""], "the ledger's name is empty"),
        (["report", "n" * 300], "no run of that id or name"),
        (["runs", "n" * 300], "there is no folder"),
        (["runs", ""], "there is no folder"),
        (["annotate", "a", "--annotator", "a\x1b"], "annotator must be a name of at most 100 printable characters"),
        (["report", "a", "--labels", "given=ledger"], "there is no ledger"),
        (["compare", "a", "nowhere"], "nowhere"),
    ],
)
def test_a_wrong_call_says_what_to_mend(folder: Path, arguments: list[str], wanted: str, told: Told) -> None:
    assert wanted in told(*arguments)


def test_plan_says_how_many_samples_are_needed(folder: Path, evalstone: Evalstone) -> None:
    assert "samples needed" in evalstone("power", "a").stdout
    plan = json.loads(evalstone("power", "a", "--baseline", "b", "--json").stdout)
    assert (plan["baseline"] is not None, plan["scorers"][0]["title"]) == (True, "given")


def test_labels_are_asked_for_kept_at_once_and_gone_on_with(folder: Path, evalstone: Evalstone, told: Told) -> None:
    first = evalstone("annotate", "one", "--count", "5", typed="y\nwhat\n2\n0.5 a note\ns\nn\nq\n")
    assert max(map(len, first.stdout.splitlines())) < 200
    assert first.returncode == 0
    assert "not what" in first.stdout
    assert "not 2" in first.stdout
    assert "3 labels added, 3 in the ledger" in first.stdout
    run = read_run(folder / "one")
    with Ledger(DEFAULT_LEDGER, read_only=True) as ledger:
        kept = labels(ledger, run.id, run["given"].info.signature)
    assert [(label.value, label.note, label.chosen) for label in kept] == [
        (1.0, "", "stratified"), (0.5, "a note", "stratified"), (None, "", "stratified"), (0.0, "", "stratified"),
    ]  # fmt: skip
    assert "must end in .csv or .jsonl, not 'l.txt'" in told("ledger", "export", "l.txt", "--what", "labels")
    assert "no sample" in told("ledger", "export", "l.csv", "--what", "labels", "--run", "a")
    for suffix in ("csv", "jsonl"):
        assert (
            "3 labeled samples"
            in evalstone("ledger", "export", f"l.{suffix}", "--what", "labels", "--run", "one").stdout
        )
        assert load_labels(run, "given", f"l.{suffix}") == {
            label.key: label.value for label in kept if label.value is not None
        }
    reports = [
        json.loads(evalstone("report", "one", "--labels", f"given={where}", "--json").stdout)["corrected"]
        for where in ("ledger", "l.csv", "l.jsonl")
    ]
    assert reports[0] == reports[1] == reports[2]
    again = evalstone("annotate", "one", "--count", "100", typed="y\n" * 100)
    assert "26 labels added, 29 in" in again.stdout
    assert "Every sample that" in evalstone("annotate", "one").stdout
    assert "0 labels added, 0 in" in evalstone("annotate", "one", "--annotator", "bob").stdout
    assert "has no label of given" in told("report", "a", "--labels", "given=ledger")


def test_a_label_in_the_terminal_is_undone_and_the_whole_sample_is_shown(folder: Path, evalstone: Evalstone) -> None:
    shown = evalstone("annotate", "one", "--count", "3", typed="u\ny\nu\nm\nn\nq\n").stdout
    assert "no label of this session to undo" in shown
    assert "1 label added, 1 in the ledger" in shown
    run = read_run(folder / "one")
    with Ledger(DEFAULT_LEDGER, read_only=True) as ledger:
        assert [label.value for label in labels(ledger, run.id)] == [0.0]


def test_criterion_question_and_answer_fit_on_a_small_terminal() -> None:
    texts = {name: " ".join(f"{name}{number}" for number in range(400)) for name in ("question", "answer", "passage 1")}
    shown = list(fitted([*texts.items(), ("passage 2", "short")], 78, 24 - CHROME))
    assert sum(1 + len(lines) for _, lines in shown) <= 24 - CHROME
    assert max(len(line) for _, lines in shown for line in lines) <= 78
    assert [name for name, _ in shown][:2] == ["question", "answer"]
    assert all(lines[0].startswith(f"{name.split()[0]}") for name, lines in shown)
    assert all("m more" in lines[-1] for _, lines in shown)
    whole = list(fitted([("question", "a"), ("answer", "b\n\nc"), ("passage 1", "d")], 78, 18))
    assert whole == [("question", ["a"]), ("answer", ["b", "", "c"]), ("passage 1", ["d"])]


def test_a_run_without_a_score_has_nothing_to_label(folder: Path, told: Told) -> None:
    write_run(run_of(["skip", "fail"]), "none")
    assert " score of given" in told("annotate", "none")


def test_the_judges_score_is_not_shown_to_the_one_who_labels(folder: Path, evalstone: Evalstone) -> None:
    assert "says" not in evalstone("annotate", "one", typed="q\n").stdout


@pytest.mark.parametrize("keep", [False, True])
def test_the_one_who_labels_sees_what_was_scored(folder: Path, evalstone: Evalstone, keep: bool) -> None:
    rows = [{"id": "a", "output": "<think>Is it Bern?</think>\nIt is."}]
    write_run(evaluate(rows, "contains(expected=Bern)", keep_reasoning=keep, ledger=None), "t")
    shown = evalstone("annotate", "t", typed="q\n").stdout
    assert "It is." in shown
    assert ("Is it Bern?" in shown) == keep


def test_hostile_text_is_visible_and_harmless_to_the_one_who_labels(folder: Path, evalstone: Evalstone) -> None:
    write_run(run_of(["0.5"], question="\x1b[2Jgone\u202e [bold]x"), "h")
    shown = evalstone("annotate", "h", typed="q\n").stdout
    assert "\\u001b[2Jgone\\u202e [bold]x" in shown
    assert "\x1b" not in shown


def test_no_sample_is_shown_if_none_is_asked_for(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = ({"id": str(n), "input": f"q{n}", "output": "no " * n + "yes", "reference": "yes"} for n in range(6))
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "Worst samples" not in evalstone("run", "d.jsonl", "-s", "f1_tokens", "--out", "r", "--top", "0").stdout
    assert "Worst samples" not in evalstone("report", "r", "--top", "0").stdout
    assert "Worst samples" in evalstone("report", "r", "--top", "1").stdout


@pytest.mark.parametrize("top", [0, 1, 3])
def test_a_page_shows_as_many_of_the_worst_samples_as_asked_for(folder: Path, evalstone: Evalstone, top: int) -> None:
    shown = evalstone("report", "a", "--html", "-", "--top", str(top)).stdout
    worst, _, listed = shown.partition('id="list"')
    assert (worst.count('<details class="sample"'), listed.count('<details class="sample"')) == (top, 40)


def test_runs_show_the_scale_of_a_mean(folder: Path, evalstone: Evalstone) -> None:
    write_run(run_of(["0.5"] * 3, [Given(scale=10)]), folder / "ten")
    assert "given 5.00 of 10" in " ".join(evalstone("runs", "ten").stdout.split())


def test_runs_of_an_audit_are_neither_listed_nor_gated(folder: Path, evalstone: Evalstone, told: Told) -> None:
    audit([{"id": "1", "output": "Paris is in France.", "context": ["Paris is in France."]}])
    assert re.fullmatch(r"No .*\.evalstone/ledger\.db\.\n", evalstone("runs").stdout)
    with Ledger(".evalstone/ledger.db") as ledger:
        audited = read_run(ledger.runs()[0].id)
    assert "judge's audit" in told("gate", audited.id, "--min", "faithfulness=1")
    assert "no saved runs" in told("report", "last")
    write_run(audited, folder / "audited")
    listed = [*map(json.loads, evalstone("runs", ".", "--json").stdout.splitlines())]
    assert sorted(row["folder"] for row in listed) == ["a", "b", "one"]
    assert "judge's audit" in told("gate", "audited", "--min", "faithfulness=1")
    (folder / "audited" / "summary.json").write_text('{"format": 7, "evalstone": "9.9"}')
    assert re.search(r"audited/summary\.json .* 7, .* 9\.9", told("runs", "."))


def test_runs_of_files_without_ids_are_paired_by_their_questions(
    tmp_path: Path, evalstone: Evalstone, told: Told
) -> None:
    for name, good in (("a", 16), ("b", 22)):
        rows = ({"question": f"q{n}", "answer": "yes" if n < good else "no"} for n in range(24))
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        ran = evalstone("run", f"{name}.jsonl", "--scorer", "contains(expected=yes)", "--out", name)
        assert ran.returncode == 0
    (line,) = json.loads(evalstone("compare", "a", "b", "--json").stdout)["scorers"]
    assert (line["n"], line["difference"]["estimate"]) == (24, 0.25)
    assert json.loads(evalstone("power", "b", "--baseline", "a", "--json").stdout)["scorers"][0]["plan"]["n"] == 24
    for allowed in ((), ("--allow-mismatch",)):
        gated = evalstone(
            "gate", "a", "--baseline", "b", "--max-regression", "contains=0.1", "--alpha", "0.4", *allowed
        )
        assert gated.returncode == 1
    same = "annotate", "b", "--same-as", "a"
    assert "no sample of run" in told(*same)
    evalstone("annotate", "a", "--count", "3", typed="y\nn\ny\n")
    assert "3 labels added" in evalstone(*same, typed="y\nn\ny\n").stdout
    labels = ("--labels", "A:contains=ledger", "--labels", "B:contains=ledger")
    assert json.loads(evalstone("compare", "a", "b", *labels, "--json").stdout)["corrected"]


def test_labels_of_both_runs_correct_their_difference(folder: Path, evalstone: Evalstone) -> None:
    evalstone("annotate", "a", "--count", "6", typed="y\nn\n" * 3)
    evalstone("annotate", "b", "--same-as", "a", "--count", "9", typed="y\nn\n" * 5)
    with Ledger(DEFAULT_LEDGER, read_only=True) as ledger:
        kept = [labels(ledger, read_run(folder / name).id) for name in "ab"]
    assert {label.key for label in kept[0]} == {label.key for label in kept[1]}
    assert {label.chosen for label in kept[1]} == {"shared"}
    assert re.fullmatch(r"Every .* of a .*\n", evalstone("annotate", "b", "--same-as", "a").stdout)
    given = ("--labels", "A:given=ledger", "--labels", "B:given=ledger")
    (line,) = json.loads(evalstone("compare", "a", "b", *given, "--json").stdout)["corrected"]
    assert 0 < line["labeled"] <= 6
    assert "corrected" in evalstone("compare", "a", "b", *given).stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("given=a.csv", "--labels takes RUN:SCORER=FILE, where RUN is A or B, not 'given=a.csv'"),
        ("C:given=a.csv", "--labels takes RUN:SCORER=FILE, where RUN is A or B, not 'C:given=a.csv'"),
        ("A:no=a.csv", "--labels takes RUN:SCORER=FILE, where SCORER is one of"),
    ],
)
def test_labels_of_no_run_or_scorer_are_refused(folder: Path, evalstone: Evalstone, text: str, problem: str) -> None:
    done = evalstone("compare", "a", "b", "--labels", text)
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_gate_takes_labels_of_the_run_and_of_its_baseline(folder: Path, evalstone: Evalstone, told: Told) -> None:
    for name in "ab":
        rows = "".join(f"s{number},0.2\n" for number in range(1, 41) if number % 4)
        (folder / f"{name}.csv").write_text(f"id,label\n{rows}")
    check = ("gate", "a", "--look", "1", "--missing", "ignore", "--min", "given=0.5")
    done = evalstone(*check, "--labels", "given=a.csv")
    assert done.returncode == 1
    assert "30 (30 labels)" in done.stdout
    both = ("--baseline", "b", "--max-regression", "given=0.5", "--baseline-labels", "given=b.csv")
    checks = json.loads(evalstone(*check, "--labels", "given=a.csv", *both, "--json").stdout)["decisions"]
    assert [one["labeled"] is None for one in checks] == [False, False]
    assert "--baseline-labels needs" in told(*check, "--baseline-labels", "given=b.csv")
    assert " takes SCORER=FILE" in told(*check, "--labels", "no=a.csv")
    twice = ("--labels", "given=a.csv", "--labels", "given=b.csv")
    assert " has labels already" in told(*check, *twice)
    of_one = ("--labels", "A:given=a.csv", "--labels", "A:given=b.csv")
    assert " has labels already" in told("compare", "a", "b", *of_one)


def test_a_comparison_takes_a_largest_change_a_margin_and_what_missing_scores_are(
    folder: Path, evalstone: Evalstone, told: Told
) -> None:
    write_run(run_of([f"{0.5 + n % 7 / 50}" for n in range(40)]), "before")
    write_run(run_of([f"{0.53 + n % 7 / 50}" for n in range(38)] + ["fail"] * 2), "after")
    shown = evalstone("compare", "before", "after").stdout
    assert "no significant difference" in shown
    assert "(0 in A, 2 in B); --missing" in " ".join(shown.split())
    for most in ("0.1", "given=0.1"):
        found = evalstone("compare", "before", "after", "--max-change", most, "--missing", "ignore").stdout
        assert "better" in found
    same = ("compare", "before", "before", "--max-change", "0.1", "--margin", "0.05")
    assert "= equivalent" in evalstone(*same).stdout
    assert re.search("--margin .*, not 2 numbers", told(*same, "--margin", "1"))
    assert "--missing takes worst" in told("compare", "before", "after", "--missing", "some")
    assert re.search("max-change .* most 1, not 2", told(*same[:3], "--max-change", "2"))
