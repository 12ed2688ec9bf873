"""The GitHub Action: its script against an API on loopback, and where its inputs go."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from evalstone.cli.options import declared
from evalstone.cli.results import gate
from evalstone.ledger.base import DEFAULT_LEDGER, file_of

pytestmark = pytest.mark.slow

ACTION = Path(__file__).parents[1] / "action"
MARKER = "<!-- evalstone: evalstone -->"
NO_BASELINE = "There is no baseline"
NOT_POSTED = "::warning::The report could not be posted as a comment"
CUT = "The report was cut"
PLAIN: dict[str, str] = {}
"""No headers."""
NO_WAIT: list[float] = []


class GitHub(ThreadingHTTPServer):
    """Comments of a pull request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str, str]] = []
        self.status = 200
        self.owner = ""
        self.raw: bytes | None = None
        self.refusals: list[tuple[str, int, dict[str, str], str]] = []
        """The next replies to what isn't a GET: the method, the status, headers, and GitHub's message."""
        self.location = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, body: str, kind: str = "Bot", login: str = "somebody") -> None:
        self.comments.append({"id": len(self.comments) + 1, "body": body, "user": {"type": kind, "login": login}})


class Handler(BaseHTTPRequestHandler):
    server: GitHub  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        if self.path == "/user":
            self.answer({"login": self.server.owner} if self.server.owner else {})
        else:
            page = int(parse_qs(urlsplit(self.path).query).get("page", ["1"])[0])
            self.answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        body = self.body()
        if self.refused(body):
            return
        if self.server.status == 200:
            self.server.add(body)
        self.answer({})

    def do_PATCH(self) -> None:
        if self.refused(body := self.body()):
            return
        number = int(self.path.rpartition("/")[2])
        self.server.comments[number - 1]["body"] = body
        self.answer({})

    def refused(self, body: str) -> bool:
        if not self.server.refusals:
            return False
        method, status, headers, message = self.server.refusals.pop(0)
        assert method == self.command
        if message == "made all the same":
            self.server.add(body)
        self.server.calls.append((self.command, self.path, self.headers["Authorization"]))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps({"message": message}).encode())
        return True

    def body(self) -> str:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def answer(self, value: object) -> None:
        self.server.calls.append((self.command, self.path, self.headers["Authorization"]))
        self.send_response(403 if self.path == "/user" and not self.server.owner else self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        if self.server.raw is not None:
            self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(json.dumps(value).encode() if self.server.raw is None else self.server.raw)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def github() -> Generator[GitHub]:
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def environment(github: GitHub, tmp_path: Path) -> dict[str, str]:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}), "utf-8")
    return {
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output.txt"),
        "INPUT_TOKEN": "t0ken",
        "INPUT_DATA": "answers.jsonl",
        "INPUT_RESULTS": "results",
        "INPUT_NAME": "evalstone",
        "INPUT_COMMENT": "true",
        "INPUT_INCONCLUSIVE": "report",
    }


@pytest.fixture
def script(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("evalstone_action", ACTION / "evaluate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def waits(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the script waits, which take no time."""
    found: list[float] = []
    monkeypatch.setattr(script, "time", type("Clock", (), {"sleep": found.append}))
    return found


def act(folder: Path, environment: dict[str, str], **inputs: str) -> subprocess.CompletedProcess[str]:
    given = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
    return subprocess.run(
        [sys.executable, str(ACTION / "evaluate.py")],
        cwd=folder,
        env={**os.environ, **environment, **given},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_run_is_gated_compared_and_shown_in_one_comment(
    tmp_path: Path, environment: dict[str, str], github: GitHub
) -> None:
    rows = [{"id": str(n), "output": "::error::no" if n == 3 else "yes", "reference": "yes"} for n in range(60)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    inputs = {"data": "cases.jsonl", "scorers": "exact_match\n", "arguments": "--ledger ledger.db"}

    first = act(
        tmp_path, environment, **inputs, results="main", min="exact_match=0.7", max_regression="exact_match=0.1"
    )
    assert first.returncode == 4, first
    assert f"::warning::{NO_BASELINE}" in first.stdout
    outputs = dict(line.split("=") for line in (tmp_path / "output.txt").read_text().splitlines())
    assert outputs == {"verdict": "inconclusive", "report": "main/report.md", "results": "main"}
    (posted,) = github.comments
    assert posted["body"].startswith(f"{MARKER}\n## evalstone\n")
    assert "✓ pass" in posted["body"]
    assert NO_BASELINE in posted["body"]
    during = False  # what evalstone prints stands between commands that keep it from being read as a command
    for line in first.stdout.splitlines():
        during = line.startswith("::stop-commands::") or (during and not re.fullmatch("::[0-9a-f]{32}::", line))
        assert during or not line.startswith("::error::")

    second = act(tmp_path, environment, **inputs, baseline="main", require="exact_match")
    assert second.returncode == 1, second
    (updated,) = github.comments
    assert "✕ fail" in updated["body"]
    assert updated["body"].index("### Comparison") < updated["body"].index("<details><summary>Run</summary>\n\n### ")
    assert updated["body"] == f"{MARKER}\n" + (tmp_path / "results" / "report.md").read_text()
    assert "verdict=fail\n" in (tmp_path / "output.txt").read_text()
    assert (tmp_path / "summary.md").read_text().count("## evalstone\n") == 2
    assert {call[2] for call in github.calls} == {"Bearer t0ken"}


@pytest.mark.parametrize(("code", "verdict"), [(0, "none"), (1, "fail"), (3, "incomplete"), (5, "scores_failed")])
def test_the_verdict_on_a_run_without_checks_is_that_of_its_exit_code(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, verdict: str
) -> None:
    def evalstone(command: str, *arguments: str, quiet: bool = False) -> tuple[int, str]:
        if command == "run":
            (tmp_path / "results").mkdir()
            (tmp_path / "results" / "summary.json").write_text("{}")
        return (code if command == "run" else 0), ""

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INPUT_DATA", "cases.jsonl")
    monkeypatch.setattr(script, "evalstone", evalstone)
    assert script.main() == code
    assert f"verdict={verdict}\n" in (tmp_path / "output.txt").read_text()


class Commands:
    """`evalstone` as the script calls it.

    run: its exit code. gate: its exit code and verdict; None writes nothing. compare: its exit code and report.
    writes: whether the run writes results. reports: whether the gate writes a report.
    """

    def __init__(
        self,
        run: int,
        gate: tuple[int, str | None],
        compare: tuple[int, str] = (0, ""),
        *,
        writes: bool = True,
        reports: bool = True,
    ) -> None:
        self.run, self.gate, self.compare, self.writes, self.reports = run, gate, compare, writes, reports
        self.asked: dict[str, tuple[str, ...]] = {}

    def __call__(self, command: str, *arguments: str, quiet: bool = False) -> tuple[int, str]:
        self.asked[command] = arguments
        if command == "run":
            if self.writes:
                Path("results").mkdir(exist_ok=True)
                Path("results", "summary.json").write_text("{}")
            return self.run, ""
        if command != "gate":
            code, text = self.compare
            if text:
                Path(arguments[arguments.index("--markdown") + 1]).write_text(text)
            return code, ""
        code, verdict = self.gate
        if verdict is not None and self.reports:
            Path(arguments[arguments.index("--markdown") + 1]).write_text("### Checks\n")
        return code, "" if verdict is None else json.dumps({"verdict": verdict})


MIN = {"min": "contains=0.5"}
REGRESSION = {"max_regression": "contains=0.1"}


@pytest.mark.parametrize(
    ("run", "gate", "inputs", "code", "verdict"),
    [
        (0, (0, "pass"), MIN, 0, "pass"),
        (0, (4, "inconclusive"), MIN, 4, "inconclusive"),
        (5, (0, "pass"), MIN, 5, "scores_failed"),
        (3, (1, "fail"), MIN, 1, "fail"),
        (0, (3, "pass"), MIN, 3, "incomplete"),
        (4, (1, "fail"), MIN, 1, "fail"),
        (4, (0, "pass"), MIN, 4, "inconclusive"),
        (4, (0, "pass"), {**MIN, "inconclusive": "fail"}, 1, "inconclusive"),
        (1, (0, "pass"), {**MIN, "inconclusive": "pass"}, 1, "fail"),
        (0, (0, "pass"), REGRESSION, 4, "inconclusive"),
        (0, (0, "pass"), {**REGRESSION, "inconclusive": "fail"}, 1, "inconclusive"),
        (0, (1, "fail"), {**REGRESSION, **MIN}, 1, "fail"),
        (3, (0, "pass"), REGRESSION, 4, "inconclusive"),
    ],
)
def test_the_worst_of_run_gate_and_a_missing_baseline_decides(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: int, gate: Any, inputs: dict[str, str],
    code: int, verdict: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for name, value in inputs.items():
        monkeypatch.setenv(f"INPUT_{name.upper()}", value)
    commands = Commands(run, gate)
    monkeypatch.setattr(script, "evalstone", commands)
    assert script.main() == code
    assert f"verdict={verdict}\n" in (tmp_path / "output.txt").read_text()
    assert ("gate" in commands.asked) is ("min" in inputs)  # a regression needs the baseline


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        (Commands(0, (0, "pass"), writes=False), 2),  # such as --help among the arguments
        (Commands(7, (0, "pass")), 7),
        (Commands(0, (0, None)), 2),
        (Commands(0, (1, None)), 1),
        (Commands(0, (0, "pass"), reports=False), 2),
    ],
)
def test_there_is_no_verdict_without_results_or_checks(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    for name in ("summary.json", "gate.md"):  # of an earlier run
        (tmp_path / "results" / name).write_text("{}")
    monkeypatch.setenv("INPUT_MIN", "contains=0.5")
    monkeypatch.setattr(script, "evalstone", commands)
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == code
    assert "There is no verdict" in (tmp_path / "summary.md").read_text()
    assert not (tmp_path / "output.txt").exists()


@pytest.fixture
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a run to compare with, which is the input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "summary.json").write_text("{}")
    monkeypatch.setenv("INPUT_BASELINE", "before")


@pytest.mark.usefixtures("baseline")
@pytest.mark.parametrize(("mismatch", "allowed"), [("true", ("--allow-mismatch",)), ("false", ()), ("", ())])
def test_what_is_of_the_baseline_goes_to_the_gate_with_it(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, mismatch: str, allowed: tuple[str, ...]
) -> None:
    inputs = {"max_change": "0.1", "allow_mismatch": mismatch, "scorers": "a\n\n b ", "inconclusive": "fail"}
    for name, value in {**inputs, **REGRESSION}.items():
        monkeypatch.setenv(f"INPUT_{name.upper()}", value)
    monkeypatch.setattr(script, "evalstone", commands := Commands(0, (0, "pass")))
    assert script.main() == 0
    expected = ("--max-regression", "contains=0.1", "--baseline", "before", "--max-change", "0.1", *allowed)
    # Each run is the first look: it is about another state of the system.
    settings = ("--look", "1", "--inconclusive", "fail", "--markdown", str(Path("results", "gate.md")), "--json")
    assert commands.asked["gate"] == (*expected, *settings, "--", "results")
    assert commands.asked["run"][:4] == ("--scorer", "a", "--scorer", "b")
    assert commands.asked["run"][-2:] == ("--", "answers.jsonl")


@pytest.mark.usefixtures("baseline")
@pytest.mark.parametrize(("compare", "warned"), [((0, "### New\n"), False), ((2, ""), True)])
def test_a_comparison_is_that_of_this_run_and_leaves_only_the_report(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    compare: tuple[int, str],
    warned: bool,
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "part.md").write_text("### Earlier\n")
    monkeypatch.setenv("INPUT_MIN", "contains=0.5")
    monkeypatch.setattr(script, "evalstone", Commands(0, (0, "pass"), compare))
    assert script.main() == 0
    assert {path.name for path in Path("results").iterdir()} == {"report.md", "summary.json"}
    report = (tmp_path / "results" / "report.md").read_text()
    assert ("### New" in report, "Earlier" in report) == (not warned, False)
    assert ("can't be compared" in capsys.readouterr().out) is warned


@pytest.mark.parametrize("run", [0, 7])
def test_without_comments_github_is_not_called(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: GitHub, run: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INPUT_COMMENT", "false")
    monkeypatch.setattr(script, "evalstone", Commands(run, (0, "pass")))
    if run:
        with pytest.raises(SystemExit):
            script.main()
    else:
        assert script.main() == 0
    assert github.calls == []
    assert (tmp_path / "summary.md").read_text().startswith("## evalstone\n")


def test_a_message_is_one_command_of_the_workflow(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    script.warn("50% of\r\n::error::it")
    assert capsys.readouterr().out == "::warning::50%25 of%0D%0A::error::it\n"


def test_the_documented_workflow_measures_its_first_baseline(tmp_path: Path, environment: dict[str, str]) -> None:
    workflow = (ACTION.parent / "docs" / "ci.md").read_text("utf-8").partition("```yaml\n")[2].partition("```")[0]
    assert "--status success" in workflow  # so that the first push must succeed
    rule = re.search(r"inconclusive: \$\{\{ github.event_name == 'push' && '(\w+)' \|\| '(\w+)' \}\}", workflow)
    assert rule is not None
    (tmp_path / "cases.jsonl").write_text('{"output": "yes"}\n' * 60, "utf-8")
    inputs = {"data": "cases.jsonl", "scorers": "contains(expected=yes)", "arguments": "--ledger ledger.db"}
    limits = {"baseline": "baseline", "min": "contains=0.8", "max_regression": "contains=0.02"}
    push = act(tmp_path, environment, **inputs, **limits, inconclusive=rule[1])
    assert push.returncode == 0, push
    pull = act(tmp_path, environment, **inputs, **limits, inconclusive=rule[2])
    assert pull.returncode == 4, pull


def test_a_usage_error_ends_the_step_with_its_code(tmp_path: Path, environment: dict[str, str]) -> None:
    done = act(tmp_path, environment, data=(missing := "nothing.jsonl"))
    assert done.returncode == 2
    assert f"{missing} does not exist" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("results", ""),
        ("results", "a\nverdict=pass"),
        ("results", "a\rverdict=pass"),
        ("allow_mismatch", "yes"),
        ("max_change", "0.1"),
        ("results", __file__),
        ("baseline", "./results"),
        ("baseline", __file__),
        ("baseline", str(ACTION)),
        ("data", ""),
        ("inconclusive", "skip"),
        ("name", "-->"),
        ("comment", "yes"),
        ("arguments", "'"),
        ("arguments", "--budget 5 --out elsewhere"),
        ("arguments", "--out=elsewhere"),
        ("arguments", "-oelsewhere"),
        ("arguments", "-qvo elsewhere"),
        ("arguments", "--judge lexical"),
        ("arguments", "--markdown run.md"),
        ("arguments", "-s exact_match"),
        ("arguments", "-- other.jsonl"),
    ],
)
def test_a_wrong_input_is_an_error(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(f"INPUT_{name.upper()}", value)
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 2
    printed = capsys.readouterr().out
    assert re.fullmatch(f"::error::{name.replace('_', '-')} must [^\n]*\n", printed)


def test_a_comment_of_somebody_else_is_not_replaced_and_later_pages_are_read(
    script: ModuleType, github: GitHub
) -> None:
    for number in range(100):
        github.add(f"{MARKER} {number}" if number == 3 else "hello", "User")
    others = [f"> {MARKER}", "<!-- evalstone: other -->\nold"]
    github.add(others[0])
    github.add(f"{MARKER}\nof a company", "Organization")
    github.add(f"{MARKER}\nold")
    github.add(others[1])
    script.comment("evalstone", "new")
    after = [one["body"] for one in github.comments[100:]]
    assert after == [others[0], f"{MARKER}\nof a company", f"{MARKER}\nnew", others[1]]
    assert github.comments[3]["body"] == f"{MARKER} 3"
    asked = [(call[0], call[1].rpartition("/")[2]) for call in github.calls]
    page = "comments?per_page=100&page={}".format
    assert asked == [("GET", page(1)), ("GET", "user"), ("GET", page(2)), ("PATCH", "103")]


def test_the_owner_of_a_personal_token_has_one_comment(script: ModuleType, github: GitHub) -> None:
    github.owner = "me"
    github.add(f"{MARKER}\nnot mine", "User", "you")
    github.add(f"{MARKER}\nold", "User", "me")
    script.comment("evalstone", "new")
    assert [one["body"] for one in github.comments] == [f"{MARKER}\nnot mine", f"{MARKER}\nnew"]


def test_a_long_report_is_cut_to_whole_lines_that_a_comment_may_hold(script: ModuleType, github: GitHub) -> None:
    line = "- `<details> @octocat </details>`"
    script.comment("evalstone", f"<details><summary>Worst samples</summary>\n\n{(line + chr(10)) * 4000}\n</details>\n")
    body = github.comments[0]["body"]
    assert 64_400 < len(body) < 65_536
    text, end, rest = body.partition("\n\n</details>\n\nThe report was cut; the summary of the job has all of it.\n")
    assert (bool(end), rest) == (True, "")
    assert set(text.splitlines()[3:]) == {line}


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_fork_without_permission_is_warned_and_does_not_fail(
    script: ModuleType, github: GitHub, waits: list[float], capsys: pytest.CaptureFixture[str], status: int
) -> None:
    github.status = status
    script.comment("evalstone", "new")
    assert (github.comments, bool(waits)) == ([], status == 500)
    assert f"{NOT_POSTED} (HTTP {status}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("refusals", "waited"),
    [
        ([("POST", 429, {"Retry-After": "7"}, "slow down"), ("POST", 502, PLAIN, "")], [7, 2]),
        ([("POST", 403, {"Retry-After": "60"}, "You have exceeded a secondary rate limit")], [60]),
        ([("POST", 504, PLAIN, "made all the same")], [1]),
        ([("POST", 503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "")], [1]),
    ],
)
def test_what_github_asks_to_wait_for_is_tried_again_and_makes_one_comment(
    script: ModuleType,
    github: GitHub,
    waits: list[float],
    capsys: pytest.CaptureFixture[str],
    refusals: list[tuple[str, int, dict[str, str], str]],
    waited: list[float],
) -> None:
    github.refusals = refusals
    script.comment("evalstone", "new")
    assert [one["body"] for one in github.comments] == [f"{MARKER}\nnew"]
    assert waits == waited
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("refusals", "problem", "waited"),
    [
        ([("POST", 502, PLAIN, "bad")] * 4, "HTTP 502; bad)", [1, 2, 4]),
        ([("POST", 429, {"Retry-After": "61"}, "later")], "HTTP 429; later)", NO_WAIT),
        ([("POST", 422, PLAIN, "Validation Failed")], "HTTP 422; Validation Failed)", NO_WAIT),
        ([("POST", 422, PLAIN, "x" * 300)], f"HTTP 422; {'x' * 200})", NO_WAIT),
        (
            [("POST", 401, PLAIN, "Bad credentials")],
            "HTTP 401; Bad credentials; the token may not write: a fork, or the permission pull-requests: write is "
            "missing)",
            NO_WAIT,
        ),
        (
            [("POST", 403, PLAIN, "Unable to create comment because issue is locked.")],
            "HTTP 403; Unable to create comment because issue is locked.)",
            NO_WAIT,
        ),
        (
            [("POST", 403, PLAIN, "Resource not accessible by integration")],
            "HTTP 403; Resource not accessible by integration; the token may not write: a fork, or the permission "
            "pull-requests: write is missing)",
            NO_WAIT,
        ),
    ],
)
def test_what_github_refuses_is_warned_of_with_its_reason(
    script: ModuleType,
    github: GitHub,
    waits: list[float],
    capsys: pytest.CaptureFixture[str],
    refusals: list[tuple[str, int, dict[str, str], str]],
    problem: str,
    waited: list[float],
) -> None:
    github.refusals = refusals
    script.comment("evalstone", "new")
    assert (github.comments, github.refusals, waits) == ([], [], waited)
    (line,) = capsys.readouterr().out.splitlines()
    assert line == f"{NOT_POSTED} ({problem}. It is in the job's summary."


def test_a_comment_that_is_too_long_for_github_is_made_shorter(script: ModuleType, github: GitHub) -> None:
    github.refusals = [("POST", 422, PLAIN, "body is too long (maximum is 65536 characters)")]
    script.comment("evalstone", "😀 line\n" * 5000)
    (posted,) = github.comments
    assert 9_000 < len(posted["body"]) < 10_000
    assert posted["body"].endswith(f"{CUT}; the summary of the job has all of it.\n")


@pytest.mark.parametrize("before", [0, 3])
def test_a_comment_that_github_refuses_though_it_is_short_or_at_last_is_warned_of(
    script: ModuleType, github: GitHub, waits: list[float], capsys: pytest.CaptureFixture[str], before: int
) -> None:
    refused = ("POST", 422, PLAIN, "body is too long")
    github.refusals = [("POST", 502, PLAIN, "bad")] * before + [refused] * (1 if before else 2)
    script.comment("evalstone", "line\n" * 5000)
    assert (github.comments, github.refusals, waits) == ([], [], [1, 2, 4][:before])
    assert f"{NOT_POSTED} (HTTP 422; {refused[-1]})" in capsys.readouterr().out


def test_a_summary_is_cut_at_githubs_limit_with_a_notice(script: ModuleType) -> None:
    text = "<details><summary>All</summary>\n\n" + "é line\n" * 200_000 + "\n</details>\n"
    shown = script.cut(text, script.LONGEST_SUMMARY, in_bytes=True, rest=(rest := "results/report.md has all of it"))
    assert 1024 * 1024 - 1000 < len(shown.encode()) <= 1024 * 1024
    assert shown.endswith(f"é line\n\n</details>\n\n{CUT}; {rest}.\n")
    assert script.cut("short", script.LONGEST_SUMMARY, in_bytes=True, rest="") == "short"


def test_the_token_follows_no_redirect(script: ModuleType, github: GitHub, capsys: pytest.CaptureFixture[str]) -> None:
    github.status, github.location = 302, f"{github.url}/elsewhere"
    script.comment("evalstone", "new")
    (call,) = github.calls
    assert call[1].partition("?")[0].endswith("/issues/7/comments")
    assert "::warning::" in capsys.readouterr().out


def test_an_api_that_is_away_is_warned_of(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    script.comment("evalstone", "new")
    assert "::warning::" in capsys.readouterr().out


@pytest.mark.parametrize("reply", [b"[]", b'{"message": "no"}', b"[null]", b"<html>"])
def test_a_reply_that_is_none_of_github_is_warned_of(
    script: ModuleType, github: GitHub, capsys: pytest.CaptureFixture[str], reply: bytes
) -> None:
    github.raw = reply if reply == b"[]" else reply.ljust(1000)
    script.comment("evalstone", "new")
    assert f"{NOT_POSTED} (" in capsys.readouterr().out


@pytest.mark.parametrize(("command", "threshold"), [("run", ""), ("gate", "exact_match=two")])
def test_a_command_that_fails_replaces_the_verdict_on_earlier_answers(
    tmp_path: Path, environment: dict[str, str], github: GitHub, command: str, threshold: str
) -> None:
    github.add(f"{MARKER}\n✓ pass")
    if command == "gate":
        (tmp_path / "cases.json").write_text('[{"output": "yes", "reference": "yes"}]', "utf-8")
    inputs = {"scorers": "exact_match", "arguments": "--ledger ledger.db", "min": threshold}
    assert act(tmp_path, environment, data="cases.json", **inputs).returncode == 2
    (updated,) = github.comments
    assert "✓ pass" not in updated["body"]
    assert f"`evalstone {command}` failed" in updated["body"]
    assert f"`evalstone {command}` failed" in (tmp_path / "summary.md").read_text()


def test_a_threshold_of_the_run_outranks_an_inconclusive_gate_and_is_reported(
    tmp_path: Path, environment: dict[str, str], github: GitHub
) -> None:
    (tmp_path / "cases.jsonl").write_text('{"output": "yes"}\n' * 5 + '{"output": "no"}\n', "utf-8")
    inputs = {"data": "cases.jsonl", "scorers": "contains(expected=yes)", "min": "contains=0.8"}
    arguments = "--ledger ledger.db --min contains=0.99"
    done = act(tmp_path, environment, **inputs, arguments=f"{arguments} --alpha none", inconclusive="pass")
    assert done.returncode == 1, done
    assert "verdict=fail\n" in (tmp_path / "output.txt").read_text()
    comment = github.comments[0]["body"]
    assert "A threshold of the run" in comment
    assert re.search(r"^\| contains.* 0\.833 .*at least 0\.99 .*fail", comment, re.MULTILINE)
    assert "<details><summary>Run" not in comment

    undecided = act(tmp_path, environment, **inputs, arguments=f"{arguments} --sequential", inconclusive="pass")
    assert undecided.returncode == 0, undecided
    assert (tmp_path / "output.txt").read_text().splitlines()[-3] == "verdict=inconclusive"
    comment = github.comments[0]["body"]
    assert "decide the thresholds" in comment
    assert re.search(r"^\| contains.* at least 0\.99 .*inconclusive", comment, re.MULTILINE)


def test_the_system_under_test_gets_no_token_and_what_it_prints_is_no_command(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[dict[str, str]] = []
    printing = r"import sys; sys.stdout.buffer.write(b'::error::\xff\n')"

    def start(command: list[str], *, env: dict[str, str], **settings: Any) -> subprocess.Popen[str]:
        given.append(env)
        return subprocess.Popen([sys.executable, "-c", printing], **settings)

    monkeypatch.setattr(script, "subprocess", SimpleNamespace(Popen=start, PIPE=subprocess.PIPE))
    tokens: set[str] = set()
    for quiet, shown in ((False, ["::error::\\xff"]), (True, [])):
        assert script.evalstone("run", quiet=quiet) == (0, "::error::\\xff\n")
        first, *printed, last = capsys.readouterr().out.splitlines()
        assert printed == [*shown, ""]
        assert first.removeprefix("::stop-commands::") == last.strip(":")
        tokens.add(last.strip(":"))
    assert [len(token) for token in tokens] == [32, 32]  # what is printed can't know the one that ends it
    assert "INPUT_TOKEN" not in given[0]
    assert "INPUT_RESULTS" in given[0]


def test_a_module_of_the_repository_does_not_take_the_place_of_evalstone(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evalstone.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert script.evalstone("--version", quiet=True)[0] == 0


def test_the_baseline_of_the_documented_workflow_is_of_a_push_and_not_of_a_branch_of_a_fork() -> None:
    workflow = (ACTION.parent / "docs" / "ci.md").read_text("utf-8")
    assert all("--event push" in line for line in workflow.splitlines() if "gh run list" in line)


def test_a_push_has_no_comment(script: ModuleType, environment: dict[str, str], github: GitHub) -> None:
    Path(environment["GITHUB_EVENT_PATH"]).write_text('{"ref": "refs/heads/main"}', "utf-8")
    script.comment("evalstone", "new")
    assert github.calls == []


def test_a_version_that_is_none_is_not_given_to_pip(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INPUT_VERSION", "0.1.0 --index-url=http://evil")
    with pytest.raises(SystemExit):
        script.install()


def test_expressions_stand_in_environments_and_outputs_only_and_every_input_is_used() -> None:
    text = (ACTION / "action.yml").read_text("utf-8")
    keys: list[tuple[int, str]] = []
    with_expression: list[tuple[str, str]] = []
    for line in text.splitlines():
        if not (match := re.match(r"( *)(?:- )?([\w-]+):", line)):
            assert "${{" not in line or keys[-2:] == [(6, "with"), (8, "restore-keys")]
            continue
        keys = [(depth, key) for depth, key in keys if depth < len(match[1])] + [(len(match[1]), match[2])]
        if "${{" in line:
            with_expression.append((keys[-2][1], keys[-1][1]))
    assert {(parent, key) for parent, key in with_expression if parent not in ("env", "with")} == {
        ("verdict", "value"), ("report", "value"), ("results", "value"), ("token", "default"),
    }  # fmt: skip
    key, saved = re.findall(r" key: (.*)", text)
    assert saved == "${{ steps.cache.outputs.cache-primary-key }}"
    assert not re.search(r"actions/cache@", text)  # which saves nothing where a check fails
    assert re.findall(r"if: (.*)\n      uses: actions/cache/save@", text) == ["always() && inputs.cache == 'true'"]
    own = ("inputs.name", "github.job", "strategy.job-index", "github.run_id", "github.run_attempt")
    assert re.findall(r"\$\{\{ ([\w.-]+) \}\}", key) == list(own)  # two jobs of a matrix never write one cache
    inputs = re.findall(r"^  ([\w-]+):$", text.partition("outputs:")[0], re.MULTILINE)
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert set(inputs) == used
    read = {
        name.lower().replace("_", "-"): value for name, value in re.findall(r" INPUT_(\w+): \$\{\{ (.*) \}\}", text)
    }
    assert read == {name: f"inputs.{name}" for name in inputs if name != "cache"}
    source = (ACTION / "evaluate.py").read_text("utf-8")
    assert read.keys() <= set(re.findall(r"""["']([\w-]+)["']""", source))
    outputs = dict(re.findall(r"^  ([\w-]+):\n.*\n    value: \$\{\{ (.*) \}\}", text, re.MULTILINE))
    assert outputs == {name: f"steps.evaluate.outputs.{name}" for name in ("verdict", "report", "results")}


def test_the_inputs_of_the_action_have_the_defaults_of_the_commands_and_the_cache_is_the_folder_of_the_ledger() -> None:
    text = (ACTION / "action.yml").read_text("utf-8")
    parts = re.split(r"^  ([\w-]+):$", text.partition("inputs:")[2].partition("\noutputs:")[0], flags=re.MULTILINE)[1:]
    inputs = dict(zip(parts[::2], parts[1::2], strict=True))
    found = {name: re.findall(r"^    default: (.*)$", part, re.MULTILINE) for name, part in inputs.items()}
    assert [name for name, part in inputs.items() if "required: true" in part] == ["data"]
    assert found.pop("data") == []
    defaults = {one.name: one.option.default or one.default for one in declared(gate)}
    same = ("alpha", "missing", "inconclusive", "allow-mismatch")
    shown = {name: json.dumps(found.pop(name)[0].strip('"')) for name in same}
    assert shown == {name: json.dumps(str(defaults[name.replace("-", "_")]).lower()) for name in same}
    own = {"results": "evalstone-results", "comment": '"true"', "name": "evalstone", "cache": '"true"'}
    assert {name: default for name, (default,) in found.items() if default != '""'} == {
        **own,
        "token": "${{ github.token }}",
    }
    ledger = file_of(DEFAULT_LEDGER)
    assert ledger is not None
    assert set(re.findall(r" path: (.*)", text)) == {str(ledger.parent)}
    for step in ("restore", "save"):
        assert re.search(rf"if: .*inputs.cache == 'true'\n      uses: actions/cache/{step}@", text)
    assert re.findall(r'run: python3 "\$GITHUB_ACTION_PATH/evaluate.py"(.*)', text) == [" install", ""]
