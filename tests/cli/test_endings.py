"""How a run ends: the exit codes of `run`, `report` and `gate` agree, and `--out` never keeps an earlier run."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalstone import read_run
from evalstone.results.endings import (
    BATCH,
    BUDGET,
    COMPLETE,
    DECIDED,
    ENDINGS,
    ERROR,
    INTERRUPTED,
    JUDGE_REFUSED,
    JUDGE_UNAVAILABLE,
    KILLED,
    MAX_REQUESTS,
    NOT_STARTED,
    STOPPED,
    STORAGE,
    TARGET_UNAVAILABLE,
    Ending,
    ExitCode,
    first_code,
)
from tests.cli.conftest import Done, Evalstone
from tests.serving import Response, obliging, serving

SAMPLES = 40
RIGHT = ("--min", "faithfulness=0.3", "--missing", "ignore")
"""A gate that yesterday's run passes."""


def after(number: int, response: Response) -> Callable[[dict[str, Any], int], Any]:
    """Answer the first requests, and then always respond like this."""
    return lambda request, count: obliging(request, count) if count <= number else response


def error(status: int, **headers: str) -> Response:
    return Response(status, {"error": {"message": "no"}}, headers)


def interrupting(request: dict[str, Any], number: int) -> Any:
    if number == 12:
        os.kill(os.getpid(), signal.SIGTERM)
    return Response(body=obliging(request, number), delay=0.0 if number < 12 else 0.1)


@dataclass(frozen=True)
class Case:
    ending: Ending
    behaviour: Callable[[dict[str, Any], int], Any] = obliging
    options: tuple[str, ...] = ()
    judge: str = "prices=[1, 10]"
    code: int | None = None
    """The exit code of all three commands, if it isn't that of the ending."""


REDIRECT = error(307, Location="http://other/v1/chat/completions")
CASES = {
    "complete": Case(COMPLETE),
    "the first samples": Case(COMPLETE, options=("--limit", "5")),
    "passed during the run": Case(DECIDED, options=("--sequential", "--min", "faithfulness=0.3")),
    "a budget": Case(BUDGET, options=("--budget", "0.02")),
    "a budget for nothing": Case(BUDGET, options=("--budget", "0")),
    "max_requests": Case(MAX_REQUESTS, judge="max_requests=12"),
    "401": Case(JUDGE_REFUSED, after(0, error(401))),
    "403": Case(JUDGE_REFUSED, after(0, error(403))),
    "404": Case(JUDGE_REFUSED, after(0, error(404))),
    "redirect": Case(JUDGE_REFUSED, after(0, REDIRECT)),
    "401 later": Case(JUDGE_REFUSED, after(12, error(401))),
    "redirect later": Case(JUDGE_REFUSED, after(12, REDIRECT)),
    "always 400": Case(JUDGE_UNAVAILABLE, after(0, error(400))),
    "some failures": Case(COMPLETE, after(60, error(400)), code=5),
    "interrupted": Case(INTERRUPTED, interrupting),
    "a target without access": Case(TARGET_UNAVAILABLE, after(0, error(401)), options=("--target", "vllm/m")),
    "a target that fails": Case(TARGET_UNAVAILABLE, options=("--target", "agent.py:fails")),
    "a judge of a wrong type": Case(ERROR, options=("--scorer", "own:scored")),
}
TESTED_ELSEWHERE = {BATCH, STORAGE, STOPPED, KILLED, NOT_STARTED}

AGENT = "def fails(*, input):\n    raise RuntimeError('no database')\n"
SCORER = """
from evalstone import Judge, Score, scorer
from evalstone.questions import ListClaims

class Wrong(Judge):
    identity = "wrong"

    def answer(self, question, repeat=0):
        return "yes"

@scorer
async def scored(ask, output):
    return Score(1.0, (await ask(ListClaims(text=output), Wrong())).value)
"""


@pytest.fixture
def folder(tmp_path: Path, evalstone: Evalstone) -> Path:
    """A folder with data, and with a complete run of an earlier version of it in `out`."""
    (tmp_path / "yesterday").mkdir()
    for name, samples, text in (("yesterday/data.jsonl", 20, "said"), ("data.jsonl", SAMPLES, "says")):
        rows = [
            {
                "id": f"s{n}",
                "input": f"question {n}",
                "output": f"answer {n} {text} this",
                "context": [f"answer {n} {text} this"],
            }
            for n in range(samples)
        ]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "own.py").write_text(SCORER)
    done = evalstone("run", "yesterday/data.jsonl", "-s", "faithfulness", "--ledger", "l.db", "--out", "out", "-q")
    assert done.returncode == 0, done.stderr
    assert evalstone("gate", "out", *RIGHT).returncode == 0
    return tmp_path


def run(evalstone: Evalstone, url: str, case: Case, *more: str) -> Done:
    arguments = ("-s", "faithfulness", "--ledger", "l.db", "--out", "out", "-q", "--concurrency", "4")
    judge = ("--judge", f"vllm/m({url}, {case.judge})")
    env = {"VLLM_BASE_URL": url}
    return evalstone("run", "data.jsonl", *arguments, *judge, *case.options, *more, env=env)


@pytest.mark.parametrize("name", CASES)
def test_run_report_and_gate_agree_on_how_a_run_ended(name: str, folder: Path, evalstone: Evalstone) -> None:
    case = CASES[name]
    yesterday = read_run(folder / "out").id
    if "--target" in case.options:  # other answers than those of yesterday
        (folder / "out" / "summary.json").unlink()
    with serving(case.behaviour) as server:
        done = run(evalstone, server.url, case)
    saved = read_run(folder / "out")
    assert saved.id != yesterday
    assert saved.ending is case.ending
    codes = [done.returncode, *(evalstone(command, "out", *more).returncode for command, more in COMMANDS)]
    after_all = case.ending.saved_code if case.code is None else case.code
    assert codes == [case.ending.code if case.code is None else case.code, after_all, after_all], done.stderr
    if case.ending.code:
        assert "to resume.\n" in done.stderr
    else:
        assert "resume" not in done.stderr
    assert read_run(saved.id, ledger=folder / "l.db").ending is case.ending
    verdict = evalstone("gate", "out", *RIGHT).stdout.splitlines()[-1]
    assert (verdict == "Gate: ✓ pass") is (after_all == 0)
    assert (verdict == "Gate: ? inconclusive") >= case.ending.broken_off


COMMANDS = (("report", ()), ("gate", RIGHT))


def test_failed_scores_do_not_count_as_saved_results(folder: Path, evalstone: Evalstone) -> None:
    with serving(after(0, error(400))) as server:
        done = run(evalstone, server.url, Case(JUDGE_UNAVAILABLE))
    saved = read_run(folder / "out")
    assert saved.n_failed == len(saved) > 0
    kept = f"0 of {SAMPLES} results are saved in l.db and out, and all finished calls; {saved.n_failed} scores failed; "
    assert kept in done.stderr


def test_every_ending_has_a_case() -> None:
    assert {case.ending for case in CASES.values()} | TESTED_ELSEWHERE == set(ENDINGS)


@pytest.mark.parametrize("name", ["401 later", "interrupted", "max_requests"])
def test_a_command_without_the_cache_does_not_promise_that_it_resumes(
    name: str, folder: Path, evalstone: Evalstone
) -> None:
    with serving(CASES[name].behaviour) as server:
        done = run(evalstone, server.url, CASES[name], "--no-cache")
        kept = len(read_run(folder / "out"))
        server.behaviour = obliging
        again = run(evalstone, server.url, Case(COMPLETE))
    assert "without --no-cache" in done.stderr
    assert "same command" not in done.stderr
    assert (again.returncode, read_run(folder / "out").resumed) == (0, kept)


def test_a_command_that_is_killed_or_refused_does_not_leave_an_earlier_run_as_its_own(
    folder: Path, evalstone: Evalstone
) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert evalstone("run", "data.jsonl", "-s", "no-scorer", "--out", "out").returncode == ExitCode.USAGE
    assert evalstone("run", "data.jsonl", "-s", "faithfulness", "--out", "out", "--dry-run").returncode == 0
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before

    def twice(request: dict[str, Any], number: int) -> Response:
        if number in (1, 4):
            time.sleep(0.1 * number)  # signals that come too soon after each other are one
            os.kill(os.getpid(), signal.SIGINT)
        return Response(body=obliging(request, number), delay=0.5)

    with serving(twice) as server:
        done = run(evalstone, server.url, Case(KILLED, twice))
    assert done.returncode == ExitCode.INTERRUPTED
    assert "Stopped. Finished calls" in done.stderr
    done = evalstone("gate", "out", *RIGHT)
    assert (done.returncode, "out has no" in done.stderr) == (ExitCode.USAGE, True)
    assert read_run("last", ledger=folder / "l.db").ending in (KILLED, INTERRUPTED)


FAILING = "def broken(output):\n    raise ValueError('no model')\n"


@pytest.mark.parametrize("more", [(), ("--min", "broken=0.5"), ("--json",)])
def test_a_complete_run_whose_scores_all_failed_says_why_its_exit_code_is_3(
    more: tuple[str, ...], folder: Path, evalstone: Evalstone
) -> None:
    (folder / "failing.py").write_text(FAILING)
    done = evalstone("run", "data.jsonl", "--limit", "3", "-s", "failing.py:broken", "-q", *more)
    assert done.returncode == ExitCode.INCOMPLETE
    said = (
        "no sample has a score: 3 scores failed, so the exit code is 3 (ValueError: no model (failing.py, line 2)); run"
    )
    assert said in " ".join(done.stderr.split())


def test_an_experiment_that_is_broken_off_leaves_no_earlier_run_in_the_folders_of_its_cells(
    folder: Path, evalstone: Evalstone
) -> None:
    (folder / "yesterday" / "data.jsonl").rename(folder / "yesterday.jsonl")
    (folder / "grid.toml").write_text(
        'scorers = ["faithfulness"]\nledger = "l.db"\nout = "grid"\n'
        '[experiment]\ndata = ["yesterday.jsonl", "data.jsonl"]\n'
    )
    assert evalstone("run", "grid.toml", "-q").returncode == 0
    assert read_run(folder / "grid" / "data").ending is COMPLETE
    with serving(after(0, error(401))) as server:
        done = evalstone("run", "grid.toml", "-q", "--judge", f"vllm/m({server.url})")
    assert done.returncode == ExitCode.INCOMPLETE
    assert read_run(folder / "grid" / "yesterday").ending is JUDGE_REFUSED
    assert not (folder / "grid" / "data" / "summary.json").exists()


def test_pages_and_json_of_a_run_that_was_broken_off_replace_earlier_ones(folder: Path, evalstone: Evalstone) -> None:
    (folder / "page.html").write_text("yesterday")
    with serving(after(12, error(401))) as server:
        done = run(evalstone, server.url, Case(JUDGE_REFUSED), "--html", "page.html", "--json")
    assert done.returncode == ExitCode.INCOMPLETE
    assert json.loads(done.stdout)["ending"] == "judge_refused"
    assert "ended early" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("codes", "first"), [((), 0), ((0, 5), 5), ((5, 4), 4), ((4, 3), 3), ((3, 1), 1), ((1, 2), 2), ((2, 130), 130)]
)
def test_of_several_exit_codes_a_command_has_the_gravest(codes: tuple[int, ...], first: int) -> None:
    assert first_code(map(ExitCode, codes)) == first
