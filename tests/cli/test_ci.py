"""`evalstone ci`: a run, its comparison with a baseline and its checks in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    first = evalstone("ci", "-q")
    assert first.returncode == 0, first.stderr
    said = "There is no baseline before yet, so nothing is compared, and max_regression not checked."
    assert said in " ".join(first.stderr.split())
    assert said in first.stdout
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


def test_only_thresholds_of_differences_pass_without_a_baseline(project: Path, evalstone: Evalstone) -> None:
    settings = (project / "evalstone.toml").read_text().replace("min = { contains = 0.5 }\n", "")
    (project / "evalstone.toml").write_text(settings)
    done = evalstone("ci", "-q", "--junit", "j.xml")
    assert (done.returncode, (project / "j.xml").exists()) == (0, False), done.stderr


def test_a_baseline_is_compared_without_a_threshold_of_it(project: Path, evalstone: Evalstone) -> None:
    settings = (project / "evalstone.toml").read_text().replace("max_regression = { contains = 0.1 }\n", "")
    (project / "evalstone.toml").write_text(settings)
    assert evalstone("ci", "-q", "--baseline", "last").returncode == 0
    outputs(project, 6)
    done = evalstone("ci", "-q", "--baseline", "last", "--json")
    run, gate, comparison = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, gate["verdict"]) == (0, "pass")
    assert run["format"] != comparison["format"]
    assert comparison["scorers"][0]["difference"]["estimate"] == pytest.approx(-0.4)


def test_the_result_is_added_to_the_summary_of_the_step(project: Path, evalstone: Evalstone) -> None:
    summary = project / "summary.md"
    summary.write_text("before\n")
    evalstone("ci", "-q", env={"GITHUB_STEP_SUMMARY": str(summary)})
    text = summary.read_text("utf-8")
    assert text.startswith("before\n\n### d.jsonl: ✓ pass")
    assert "There is no baseline before yet" in text
    done = evalstone("ci", "-q", env={"GITHUB_STEP_SUMMARY": str(project)})
    assert (done.returncode, "The summary can't be written" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    ("change", "call", "said"),
    [
        ("", "ci other.jsonl", "FILE must be a TOML file that describes the run, not 'other.jsonl'"),
        ("rm evalstone.toml", "ci", "there is no evalstone.toml in this folder; evalstone init writes one"),
        ("sequential = true", "ci", "evalstone.toml: sequential can't be used with evalstone ci; use evalstone run"),
        ("other data", "ci", "are not comparable: the samples differ"),
        ("other scorer", "ci", "no scorer in common: contains in the first, exact_match in the second"),
        ("", "ci --out before", "are the same folder"),
        ("", "ci --baseline d.jsonl", '"d.jsonl" is a file'),
        ("", "ci --baseline empty", "empty has no results"),
        ("no threshold", "ci", "evalstone.toml has no threshold, so there is nothing to check"),
    ],
)
def test_what_cannot_be_checked_is_refused_before_the_run(
    change: str, call: str, said: str, project: Path, evalstone: Evalstone
) -> None:
    file = project / "evalstone.toml"
    data, settings = (project / "d.jsonl").read_text(), file.read_text()
    assert evalstone("ci", "-q", "--out", "before").returncode == 0
    (project / "empty").mkdir()
    match change:
        case "rm evalstone.toml":
            file.unlink()
        case "other data":
            (project / "d.jsonl").write_text(data.replace('"id": "', '"id": "x').replace('"q', '"other'))
        case "other scorer":
            file.write_text(settings.replace("contains", "exact_match"))
        case "no threshold":
            file.write_text('data = "d.jsonl"\n')
        case _:
            file.write_text(f"{change}\n{settings}")
    done = evalstone(*call.split(), "-q")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (project / "results").exists()


def test_failed_answers_fail_the_checks_and_are_still_shown(project: Path, evalstone: Evalstone) -> None:
    assert evalstone("ci", "-q", "--out", "before").returncode == 0
    (project / "broken.py").write_text("def answer(input):\n    raise RuntimeError('down')\n")
    settings = (project / "evalstone.toml").read_text()
    (project / "evalstone.toml").write_text('target = "broken.py:answer"\n' + settings)
    done = evalstone("ci", "-q", "--allow-mismatch")
    assert (done.returncode, "no sample was scored in both runs" in done.stderr) == (3, True)
    assert "down" in done.stdout
    assert (project / "results" / "summary.json").exists()
