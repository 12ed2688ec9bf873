"""`evalstone report RUN --sample KEY`: one sample with its judge calls, in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalstone import Sample, ScriptedJudge, evaluate, write_run
from tests.cli.conftest import Evalstone
from tests.fakes import claims, verdicts

HOSTILE = "```\n</div><script>alert(1)</script> @everyone [x](http://x.test)\x1b[31m\u202e"


def reply(question: Any) -> Any:
    if question.kind == "list_claims":
        return claims(question.text)
    return verdicts("contradicted" if "8" in question.claims[0] else "supported")


@pytest.fixture
def folder(tmp_path: Path, evalstone: Evalstone) -> Path:
    """A run of two samples, in the folder `results`."""
    samples = [Sample(id=f"s{n}", output=f"It opens at {n}.", context=["It opens at 9.", HOSTILE]) for n in (8, 9)]
    run = evaluate(samples, ["faithfulness"], judge=ScriptedJudge(reply), ledger=None, name="nightly")
    write_run(run, tmp_path / "results")
    return tmp_path / "results"


def test_a_sample_is_shown_with_what_judges_were_asked_and_replied(folder: Path, evalstone: Evalstone) -> None:
    done = evalstone("report", "results", "--sample", "s8")
    assert done.returncode == 0
    assert done.stdout.startswith("s8 · nightly · run ")
    assert "It opens at 9." in done.stdout
    for part in ("Judge calls  2", "list_claims  scripted", "Input: text", "Input: context", "Reply", '"contradicted"'):
        assert part in done.stdout, part
    assert "Read from the reply" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\\u202e" in done.stdout


def test_a_sample_in_files(folder: Path, evalstone: Evalstone) -> None:
    files = ("--html", "s.html", "--markdown", "s.md", "--csv", "s.csv")
    done = evalstone("report", "results", "--sample", "s9", *files, "--json")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert (data["key"], data["sample"]["output"], len(data["records"])) == ("s9", "It opens at 9.", 1)
    (call, _) = data["records"][0]["calls"]
    asked = data["asked"][data["records"][0]["signature"]][call["fingerprint"]]
    assert asked == {call["judge"]: {"inputs": {"text": "It opens at 9."}}}
    page = folder.with_name("s.html").read_text(encoding="utf-8")
    assert "Input: context" in page
    assert "<script>alert" not in page
    markdown = folder.with_name("s.md").read_text(encoding="utf-8")
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    assert "Judge calls" in outside
    assert not re.search("script>|everyone|x.test", outside)
    assert "script>" in markdown
    rows = list(csv.reader(io.StringIO(folder.with_name("s.csv").read_text(encoding="utf-8"))))
    assert ["faithfulness", "1", "1 of 1 claim is supported."] in rows
    assert [row[1] for row in rows if row[:1] == ["faithfulness"]] == ["1", "list_claims", "verify_claims"]


OWN = """
from evalstone import Score, Scorer
from evalstone.questions import ListClaims

print("the code was run")


class Counted(Scorer):
    "The number of claims."

    name = "counted"
    questions = (ListClaims,)

    async def score(self, ask, *, output: str) -> Score:
        return Score(min(1.0, len(await ask(ListClaims(text=output))) / 2))
"""


def test_the_prompts_of_own_scorers_are_shown_if_their_code_is_named(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "data.jsonl").write_text('{"id": "s1", "output": "It opens at 9."}', encoding="utf-8")
    for name in ("first", "second"):
        done = evalstone("run", "data.jsonl", "--scorer", "own.py:Counted", "--judge", "lexical", "--name", name)
        assert done.returncode == 0, done.stderr
    shown = ("report", "second", "--sample", "s1")
    without = evalstone(*shown)
    assert "its scorer has code that isn't evalstone's" in without.stdout
    assert "the code was run" not in without.stdout + without.stderr
    with_it = evalstone(*shown, "--scorer", "own.py:Counted")
    assert "Input: text" in with_it.stdout
    assert "isn't evalstone's" not in with_it.stdout
    assert "own.py" in with_it.stderr  # whose code was run
    for wrong, message in (
        ((*shown, "--scorer", "faithfulness"), "scorer must be the address of your own code"),
        (("report", "second", "--scorer", "own.py:Counted"), "shows the prompts behind one sample"),
        ((*shown, "--scorer", "none.py:Counted"), "none.py"),
    ):
        refused = evalstone(*wrong)
        assert refused.returncode == 2
        assert message in refused.stderr.replace("--scorer", "scorer")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--sample", "s7"], "the run has no results of a sample 's7'; its keys are such as 's8', 's9'"),
        (["--sample", "s8", "--calibrated"], "--calibrated is about the whole run, and --sample about one sample"),
        (["--sample", "s8", "--junit", "x.xml"], "--junit is about the whole run"),
    ],
)
def test_what_does_not_fit_a_sample_is_refused(
    folder: Path, evalstone: Evalstone, arguments: list[str], wanted: str
) -> None:
    done = evalstone("report", str(folder), *arguments)
    assert done.returncode == 2
    assert wanted in done.stderr
