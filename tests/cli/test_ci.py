"""`evalstone ci`: a run, its comparison with a baseline and its checks in one command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalstone._core.redaction import register_settings
from evalstone.cli.ci import LONGEST_SUMMARY, ci
from evalstone.cli.config_file import RunConfig
from evalstone.cli.options import declared
from tests.cli.conftest import Evalstone


@pytest.fixture
def project(tmp_path: Path, evalstone: Evalstone) -> Path:
    outputs(tmp_path, 10)
    (tmp_path / "evalstone.toml").write_text(
        'data = "d.jsonl"\nscorers = ["contains"]\nalpha = "none"\nbaseline = "before"\n'
        "max_regression = { contains = 0.1 }\nmin = { contains = 0.5 }\n"
    )
    return tmp_path


def outputs(folder: Path, right: int, total: int = 10) -> None:
    """Answers, of which so many are right."""
    rows = [
        {"id": str(n), "input": f"q{n}", "output": "yes" if n < right else "no", "reference": "yes"}
        for n in range(total)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_first_run_has_no_baseline_and_the_next_is_compared(project: Path, evalstone: Evalstone) -> None:
    first = evalstone("ci", "-q", "--markdown", "m.md")
    assert first.returncode == 4, first.stderr
    said = (
        "There is no baseline before, so nothing is compared, and max_regression can't be decided. To compare the next "
        "run with this one, copy results to before. To pass without a baseline, use --inconclusive pass."
    )
    assert said in " ".join(first.stderr.split())
    written = (project / "m.md").read_text("utf-8")
    assert "There is no baseline before, so nothing is compared." in written
    assert "? inconclusive; there is no baseline" in written
    assert "copy results to before" in written
    (project / "results").rename(project / "before")
    outputs(project, 7)
    worse = evalstone("ci", "-q", "--junit", "j.xml", "--markdown", "m.md")
    assert worse.returncode == 1, worse.stderr
    assert "contains, difference from baseline" in worse.stdout
    assert "▼ worse" in worse.stdout or "no significant difference" in worse.stdout
    assert 'failures="1"' in (project / "j.xml").read_text()
    assert (project / "m.md").read_text("utf-8").startswith("### d.jsonl: ✕ fail")
    outputs(project, 10)
    assert evalstone("ci", "-q").returncode == 0


@pytest.mark.parametrize(
    ("left_out", "inconclusive", "right", "code", "verdict", "junit"),
    [
        ("", "report", 10, 4, "inconclusive", 'failures="0" errors="0" skipped="1"'),
        ("", "pass", 10, 0, "inconclusive", 'failures="0" errors="0" skipped="1"'),
        ("", "fail", 10, 1, "inconclusive", 'failures="1" errors="0" skipped="0"'),
        ("min", "report", 10, 4, "inconclusive", 'tests="1" failures="0" errors="0" skipped="1"'),
        ("min", "pass", 10, 0, "inconclusive", 'tests="1" failures="0" errors="0" skipped="1"'),
        ("max_regression", "fail", 10, 0, "pass", 'tests="1" failures="0" errors="0" skipped="0"'),
        ("", "pass", 3, 1, "fail", 'failures="1" errors="0" skipped="1"'),
    ],
)
@pytest.mark.parametrize("alpha", ["none", 0.05])
def test_without_a_baseline_its_checks_are_inconclusive_and_no_others(
    left_out: str, inconclusive: str, right: int, code: int, verdict: str, junit: str, alpha: str | float,
    project: Path, evalstone: Evalstone,
) -> None:  # fmt: skip
    outputs(project, right * 9, 90)
    settings = (project / "evalstone.toml").read_text().replace('alpha = "none"', f"alpha = {json.dumps(alpha)}")
    kept = [line for line in settings.splitlines() if not (left_out and line.startswith(left_out))]
    (project / "evalstone.toml").write_text("\n".join(kept))
    (project / "before").mkdir()  # an empty folder is no baseline yet
    done = evalstone("ci", "-q", "--json", "--junit", "j.xml", "--inconclusive", inconclusive)
    assert done.returncode == code, done.stderr
    assert junit in (project / "j.xml").read_text()
    _, gate = map(json.loads, done.stdout.splitlines())
    assert (gate["verdict"], gate["baseline"]) == (verdict, None)
    said = {"kind": "no_baseline", "severity": "caution", "name": "before"}
    assert [each for each in gate["notes"] if each["kind"] == "no_baseline"] == [said]
    undecided = [each for each in gate["decisions"] if each["verdict"] == "inconclusive"]
    of_baseline = [each for each in gate["decisions"] if each["kind"] == "max_regression"]
    assert undecided == of_baseline
    assert not any(said in each["notes"] for each in gate["decisions"] if each not in of_baseline)
    assert [each["notes"] for each in of_baseline] == [[said]] * (left_out != "max_regression")
    asked = "--inconclusive pass" in done.stderr
    assert asked is (inconclusive == "report" and left_out != "max_regression")


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (("--baseline", "last"), "To compare the next run with this one, keep the ledger."),
        (("--out", "before"), "To compare the next run with this one, write that one to another folder."),
    ],
)
def test_how_the_next_run_gets_its_baseline_is_said(
    call: tuple[str, ...], advice: str, project: Path, evalstone: Evalstone
) -> None:
    done = evalstone("ci", "-q", "--inconclusive", "pass", *call)
    assert (done.returncode, " ".join(done.stderr.split()).endswith(advice)) == (0, True), done.stderr
    assert evalstone("ci", "-q", *call[: 2 * (call[1] == "last")]).returncode == 0


def test_a_baseline_is_compared_without_a_threshold_of_it(project: Path, evalstone: Evalstone) -> None:
    settings = (project / "evalstone.toml").read_text().replace("max_regression = { contains = 0.1 }\n", "")
    (project / "evalstone.toml").write_text(settings)
    assert evalstone("ci", "-q", "--baseline", "last").returncode == 0
    outputs(project, 6)
    done = evalstone("ci", "-q", "--baseline", "last", "--json")
    run, gate, comparison = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, gate["verdict"], gate["baseline"]) == (0, "pass", None)
    assert run["format"] != comparison["format"]
    assert comparison["scorers"][0]["difference"]["estimate"] == pytest.approx(-0.4)
    assert evalstone("ci", "-q", "--out", "before").returncode == 0
    same = evalstone("ci", "-q", "--out", "before", "--baseline", "before")
    assert (same.returncode, "are the same folder" in same.stderr) == (2, True)
    outputs(project, 6, 9)
    other = evalstone("ci", "-q", "--baseline", "before", "--allow-mismatch")
    assert (other.returncode, "difference" in other.stdout) == (0, True), other.stderr


def test_a_run_that_is_broken_off_checks_nothing_and_is_no_pass(project: Path, evalstone: Evalstone) -> None:
    (project / "gone.py").write_text(
        "from evalstone.errors import TargetRefused\n\n\ndef answer(input):\n    raise TargetRefused('access denied')\n"
    )
    settings = (project / "evalstone.toml").read_text()
    (project / "evalstone.toml").write_text('target = "gone.py:answer"\n' + settings)
    done = evalstone("ci", "-q", "--json", "--junit", "j.xml", "--inconclusive", "pass")
    run = evalstone("run", "d.jsonl", "-q", "--target", "gone.py:answer", "-s", "contains", "--out", "other")
    assert done.returncode == run.returncode != 0, done.stderr
    assert "access denied" in done.stderr
    assert "To resume" in done.stderr or "to resume" in done.stderr
    assert "✓ pass" not in done.stdout
    shown = evalstone("ci", "-q", "--inconclusive", "pass")
    assert (shown.returncode, shown.stdout) == (done.returncode, "")


def test_why_no_sample_was_scored_is_said(project: Path, evalstone: Evalstone) -> None:
    (project / "mine.py").write_text(
        "from evalstone import Skipped, scorer\n\n\n"
        "@scorer\ndef mine(*, output):\n    return Skipped('nothing to judge')\n"
    )
    settings = (project / "evalstone.toml").read_text()
    (project / "evalstone.toml").write_text(
        settings.replace('"contains"', '"mine.py:mine"').replace("contains =", "mine =")
    )
    done = evalstone("ci", "-q", "--inconclusive", "pass")
    assert (done.returncode, "no sample was scored: nothing to judge" in done.stderr) == (3, True), done.stderr


def test_the_result_is_added_to_the_summary_of_the_step(project: Path, evalstone: Evalstone) -> None:
    summary = project / "summary.md"
    summary.write_text("before\n")
    evalstone("ci", "-q", env={"GITHUB_STEP_SUMMARY": str(summary)})
    text = summary.read_text("utf-8")
    assert text.startswith("before\n\n### d.jsonl: ? inconclusive")
    assert "There is no baseline before" in text
    done = evalstone("ci", "-q", env={"GITHUB_STEP_SUMMARY": str(project)})
    assert (done.returncode, "The summary can't be written" in done.stderr) == (4, True)


def test_a_summary_fits_into_the_step_and_has_no_secrets(
    project: Path, evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "q7Zx2Lw9" * 4
    register_settings({"api_key": secret})
    outputs(project, 5)
    (project / f"{secret}.jsonl").write_text((project / "d.jsonl").read_text().replace('"no"', f'"no {secret}"'))
    (project / "evalstone.toml").write_text(
        (project / "evalstone.toml").read_text().replace("d.jsonl", f"{secret}.jsonl")
    )
    summary = project / "summary.md"

    def summarized(longest: int) -> str:
        summary.unlink(missing_ok=True)
        monkeypatch.setattr("evalstone.cli.ci.LONGEST_SUMMARY", longest)
        evalstone("ci", "-q", env={"GITHUB_STEP_SUMMARY": str(summary)})
        return summary.read_text("utf-8")

    assert LONGEST_SUMMARY == 2**20
    whole = summarized(LONGEST_SUMMARY)
    assert "no ***" in whole
    assert secret not in whole
    size = len(whole.encode())
    shorter = summarized(size - 200)
    assert shorter.startswith("\n### \\*\\*\\*.jsonl")
    assert "no ***" not in shorter
    assert summarized(50) == "\nThe result is too long for a summary; it has 50 bytes at most.\n"


@pytest.mark.parametrize(
    ("change", "call", "said"),
    [
        ("", "ci other.jsonl", "FILE must be a TOML file that describes the run, not 'other.jsonl'"),
        ("rm evalstone.toml", "ci", "there is no evalstone.toml in this folder; evalstone init writes one"),
        ("sequential = true", "ci", "evalstone ci, which checks a run after its end; use evalstone run"),
        ('engine = "ray"', "ci", "evalstone ci, which scores in its own process; use evalstone run"),
        ("experiment.targets = []", "ci", "evalstone ci, which checks a single run; run the experiment"),
        ("other data", "ci", "are not comparable: the samples differ"),
        ("other scorer", "ci", "no scorer in common: contains in the first, exact_match in the second"),
        ("", "ci --out before", "are the same folder"),
        ("", "ci --baseline d.jsonl", '"d.jsonl" is a file'),
        ("", "ci --baseline other", "other has no results"),
        ("", "ci --baseline=", "baseline must be a results folder, an ID or a name, not ''"),
        ("other column", "ci", '; map one with [map] FIELD = "COLUMN"'),
        ("fewer data", "ci", "the samples differ: 1 only in the first run"),
        ("trials = 2", "ci", "the baseline has 1 trial of each sample and the run has 2"),
        ("no threshold", "ci", "evalstone.toml has no threshold, so there is nothing to check"),
    ],
)
def test_what_cannot_be_checked_is_refused_before_the_run(
    change: str, call: str, said: str, project: Path, evalstone: Evalstone
) -> None:
    file = project / "evalstone.toml"
    data, settings = (project / "d.jsonl").read_text(), file.read_text()
    assert evalstone("ci", "-q", "--out", "before").returncode == 4
    (project / "other").mkdir()
    (project / "other" / "file").touch()
    match change:
        case "rm evalstone.toml":
            file.unlink()
        case "other data":
            (project / "d.jsonl").write_text(data.replace('"id": "', '"id": "x').replace('"q', '"other'))
        case "other column":
            (project / "d.jsonl").write_text(data.replace('"reference"', '"expectd"'))
        case "fewer data":
            outputs(project, 9, 9)
        case "trials = 2":
            (project / "right.py").write_text("def answer(input):\n    return 'yes'\n")
            file.write_text(f'target = "right.py:answer"\n{change}\n{settings}')
        case "other scorer":
            file.write_text(settings.replace("contains", "exact_match"))
        case "no threshold":
            file.write_text('data = "d.jsonl"\n')
        case _:
            file.write_text(f"{change}\n{settings}")
    done = evalstone(*call.split(), "-q")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (project / "results").exists()


def test_failed_answers_decide_nothing_and_are_still_shown(project: Path, evalstone: Evalstone) -> None:
    assert evalstone("ci", "-q", "--out", "before").returncode == 4
    (project / "broken.py").write_text("def answer(input):\n    raise RuntimeError('down')\n")
    settings = (project / "evalstone.toml").read_text()
    (project / "evalstone.toml").write_text('target = "broken.py:answer"\n' + settings)
    done = evalstone("ci", "-q", "--allow-mismatch")
    assert (done.returncode, "no sample was scored in both runs" in done.stderr) == (3, True)
    assert "? inconclusive; no sample has a score in both runs" in done.stdout
    assert "down" in done.stdout
    call = ("--baseline", "before", "--max-regression", "contains=0.1", "--alpha", "none", "-q", "--allow-mismatch")
    assert evalstone("gate", "results", *call[:-2], call[-1]).returncode == 3
    assert evalstone("run", "d.jsonl", "--target", "broken.py:answer", "-s", "contains", *call).returncode == 3
    assert (project / "results" / "summary.json").exists()


@pytest.mark.parametrize("command", ["ci", "run evalstone.toml"])
def test_a_gate_that_fails_after_the_run_is_no_usage_error(command: str, project: Path, evalstone: Evalstone) -> None:
    """The run is paid for and saved."""
    data = (project / "d.jsonl").read_text()
    assert evalstone("ci", "-q", "--out", "before").returncode == 4
    (project / "d.jsonl").write_text(data.replace('{"id": "0"', '{"weight": 2, "id": "0"'))
    done = evalstone(*command.split(), "-q", "--out", "results")
    assert (done.returncode, "the same weight in both" in done.stderr) == (3, True), done.stderr
    assert (project / "results" / "summary.json").exists()


def test_its_options_are_settings_of_the_file_under_the_same_names() -> None:
    settings = {one.name for one in declared(RunConfig)}
    assert {one.name for one in declared(ci)} - settings == {"config", "junit"}


def test_notes_name_the_keys_of_the_file(project: Path, evalstone: Evalstone) -> None:
    def answer(n: int) -> dict[str, str]:
        return {"id": str(n), "input": f"q{n}", "output": "yes"} | ({"reference": "yes"} if n else {})

    (project / "d.jsonl").write_text("".join(json.dumps(answer(n)) + "\n" for n in range(10)))
    settings = 'data = "d.jsonl"\nscorers = ["contains"]\nbaseline = "before"\nmin = { contains = 0.9 }\n'
    (project / "evalstone.toml").write_text(settings + "max_regression = { contains = 0.1 }\n")
    evalstone("ci", "-q")
    (project / "results").rename(project / "before")
    done = evalstone("ci", "-q", "--junit", "j.xml", "--markdown", "m.md", "--html", "h.html")
    assert done.returncode == 4, done.stderr
    for text in (" ".join(done.stdout.split()), (project / "m.md").read_text("utf-8")):
        for key in ("look = 2", 'alpha = "none"', 'missing = "failed"'):
            assert key in text
        assert not re.search(r"--(look|alpha|missing|labels|max-regression)", text)
    assert "look = 2" in (project / "j.xml").read_text("utf-8")
