"""`evalstone run --target`: what answers the samples, named on the command line or in a file."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Evalstone

AGENT = """
import os
import time
from evalstone.targets import Answer

def agent(*, input, trial):
    with open("calls", "a") as file:
        file.write(input + chr(10))
    if "(1)" in input:
        raise ValueError("no")
    return Answer(output="right" if trial % 2 else "wrong", cost=0.5)

def free(*, input):
    return "right"

def slow(*, input):
    with open("calls", "a") as file:
        file.write(input + chr(10))
    time.sleep(0 if os.path.exists("fast") else 0.4)
    return "right"
"""


@pytest.fixture
def app(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The module of a target, of its own for each test: a process imports a module once."""
    name = f"app_{abs(hash(request.node.name)):x}"
    (tmp_path / f"{name}.py").write_text(AGENT)
    rows = [{"id": f"q{n}", "input": f"question ({n})", "metadata": {"topic": n % 2}} for n in range(4)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines()) if (folder / "calls").exists() else 0


RIGHT = ("-s", "contains(expected=right)")


@pytest.mark.parametrize("address", ["graph_in_file.py:graph", "graph_in_module:graph"])
def test_a_graph_is_a_target_by_its_address(evalstone: Evalstone, tmp_path: Path, address: str) -> None:
    file = tmp_path / f"{address.partition(':')[0].removesuffix('.py')}.py"
    file.write_text(
        "class Graph:\n    def get_input_jsonschema(self): return {'type': 'string'}\n"
        "    def invoke(self, question): return 'right'\n\ngraph = Graph()\n"
    )
    (tmp_path / "one.jsonl").write_text('{"input": "Which?"}')
    done = evalstone("run", "one.jsonl", "--target", address, *RIGHT, "-q")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"Target code: {file}\n"
    assert f" · target {address} · " in done.stdout


def test_a_target_answers_in_trials_and_its_answers_are_kept(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    done = evalstone("run", "d.jsonl", "--target", f"{app}:agent", "--trials", "4", *RIGHT, "-o", "out", "-q")
    assert done.returncode == 5, done.stderr
    assert done.stdout.startswith("d.jsonl · 4 samples × 4 trials · ")
    assert f" · target {app}:agent · no judge" in done.stdout
    assert "cost $6.00 (target $6.00, judge $0.00)" in " ".join(done.stdout.split())
    assert done.stderr == f"Target code: {tmp_path / app}.py\n"
    assert calls(tmp_path) == 16
    rows = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert [(row["id"], row["trial"], row.get("output")) for row in rows][3:6] == [
        ("q0", 4, "wrong"), ("q1", 1, None), ("q1", 2, None),
    ]  # fmt: skip
    listed = evalstone("runs")
    assert f"{app}:agent × 4" in " ".join(listed.stdout.split())
    assert f"target {app}:agent" in evalstone("ledger", "info").stdout
    report = evalstone("report", "last", "--csv", "r.csv", "--junit", "r.xml", "--slice-by", "topic")
    assert report.returncode == 5, report.stderr
    header, first, *_ = (tmp_path / "r.csv").read_text().splitlines()
    row = dict(zip(*csv.reader([header, first]), strict=True))
    assert (row["answer"], row["trial"]) == ("right", "1")
    xml = (tmp_path / "r.xml").read_text()
    assert all(f'name="q0, trial {n}"' in xml for n in (1, 2, 3, 4))


def test_its_samples_are_scored_again_as_a_dataset(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    evalstone("run", "d.jsonl", "--target", f"{app}:agent", "--trials", "2", *RIGHT, "-o", "out", "-q")
    done = evalstone("run", "out/samples.jsonl", *RIGHT, "-o", "again", "-q")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "again" / "records.jsonl").read_text().splitlines()]
    assert [(row["sample_id"], row["group"], row["value"]) for row in rows][:2] == [
        ("q0", "q0", 1.0),
        ("q0-2", "q0", 0.0),
    ]
    assert calls(tmp_path) == 8


def test_a_file_names_a_target_beside_it_and_options_override_it(
    evalstone: Evalstone, app: str, tmp_path: Path
) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / f"{app}_beside.py").write_text(AGENT)
    (tmp_path / "d.jsonl").rename(folder / "d.jsonl")
    (folder / "run.toml").write_text(
        f'data = "d.jsonl"\nscorers = ["contains(expected=right)"]\nout = "out"\ntrials = 2\n'
        f'[target]\naddress = "{app}_beside:free"\ntimeout = 5\nmax_concurrency = 1\n'
    )
    done = evalstone("run", "sub/run.toml", "--trials", "3", "--target-version", "7", "-q")
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "out" / "summary.json").read_text())["target"]
    assert (found["identity"], found["trials"], found["answers"]) == (f"{app}_beside:free@7", 3, 12)
    done = evalstone("run", "sub/run.toml", "--target", f"{app}:agent", "-q", "-o", "other")
    assert f"target {app}:agent" in done.stdout


def test_a_dry_run_says_how_often_a_target_is_called_and_calls_nothing(
    evalstone: Evalstone, app: str, tmp_path: Path
) -> None:
    def dry(*options: str) -> str:
        done = evalstone("run", "d.jsonl", "--target", f"{app}:agent", "--trials", "3", "--dry-run", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = dry("-s", "toxicity")
    assert "Target calls: 12; " in told
    assert "cost is unknown" in told
    assert "can't be estimated" in told
    assert "0 calls" not in told
    assert "Judge calls: none" in dry(*RIGHT)
    (tmp_path / "d.jsonl").write_text(
        '{"input": "a", "output": "It is so."}\n{"input": "b", "reference": "It is not."}\n{"input": "c"}\n'
    )
    told = dry("-s", "toxicity", "-j", "openai/gpt-5.1")
    assert " 2 of the 3 samples" in told
    assert "calls: 6 judge_toxicity" in told or "6 calls" in told
    assert calls(tmp_path) == 0
    evalstone("run", "d.jsonl", "--target", f"{app}:agent", "--target-version", "1", *RIGHT, "-q")
    assert "calls: 6 (3 answers" in dry("-s", "toxicity", "--target-version", "1")


def test_a_dry_run_needs_no_key_of_its_target(evalstone: Evalstone, app: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    command = ("run", "d.jsonl", "--target", "openai/gpt-5.1", *RIGHT)
    done = evalstone(*command, "--dry-run")
    assert (done.returncode, "Target calls: 4; " in done.stdout) == (0, True), done.stderr
    assert "needs a key" in evalstone(*command).stderr


@pytest.mark.parametrize(
    ("target", "problem"),
    [("cmd:no-such-program --fast", "there is no program"), ("openai/whisper-1", "doesn't chat")],
)
def test_a_dry_run_finds_what_else_is_wrong_with_a_target(
    evalstone: Evalstone, app: str, monkeypatch: pytest.MonkeyPatch, target: str, problem: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = evalstone("run", "d.jsonl", "--target", target, *RIGHT, "--dry-run")
    assert (done.returncode, problem in done.stderr) == (2, True), done.stdout + done.stderr


def test_a_dry_run_does_not_count_as_skipped_what_an_answer_may_hold(
    evalstone: Evalstone, app: str, tmp_path: Path
) -> None:
    (tmp_path / f"{app}_scorers.py").write_text(
        "def planned(*, metadata, state=None):\n    return state['plan'] == 1\n"
    )
    rows = [
        {"input": "a", "reference": "It is so. It was.", "metadata": {"relevant": ["d1"]}},
        {"input": "b", "metadata": {"relevant": ["d1"]}},
        {
            "input": "c",
            "output": "Paris is in France.",
            "context": ["Paris is in France."],
            "metadata": {"relevant": ["d1"]},
        },
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def dry(scorer: str) -> tuple[dict[str, int], str]:
        done = evalstone("run", "d.jsonl", "--target", f"{app}:free", "--trials", "2", "--dry-run", "-s", scorer)
        assert done.returncode == 0, done.stderr
        assert "would fail" not in done.stdout
        row = [line.split() for line in done.stdout.splitlines() if "  " in line][-1]
        return {"calls": int(row[1]), "skipped": int(row[-1])}, done.stdout

    for scorer in ("recall_at_k", "tool_called(tool=x)", "trajectory_accuracy(expected=[x])", f"{app}_scorers:planned"):
        assert dry(scorer)[0] == {"calls": 0, "skipped": 0}, scorer
    # Nothing that a target returns is a reference.
    assert dry("contains")[0] == {"calls": 0, "skipped": 4}
    figures, told = dry("faithfulness")
    assert figures == {"calls": 4, "skipped": 0}
    assert "for 1 sample depend" in told
    assert ": faithfulness needs context" in told


def test_a_gate_watches_a_target_but_no_trials(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    gate = ("--sequential", "--min", "contains=0.5", *RIGHT, "-q")
    done = evalstone("run", "d.jsonl", "--target", f"{app}:free", *gate)
    assert done.returncode == 4, done.stderr
    done = evalstone("run", "d.jsonl", "--target", f"{app}:agent", "--trials", "2", *gate)
    assert done.returncode == 2
    assert "trials of one" in done.stderr
    assert calls(tmp_path) == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--trials", "2"), "--trials needs a target, which answers several times; name one: --target"),
        (("--trials", "0"), "--trials takes a whole number from 1 to 10000, not '0'"),
        (("--target-timeout", "3"), "no target is named, only its timeout; use --target ADDRESS"),
        (("--target", ""), "the target's address is empty"),
        (("--target", "APP:missing"), "has no missing"),
        (("--target", "APP:agent", "--target-timeout", "0"), "--target-timeout takes a number above 0, not 0"),
        (("--target", "APP:agent", "--batch"), "--batch can't be used with a target"),
        (
            ("--target", "APP:agent", "-s", "context_recall"),
            "context_recall needs reference and context (or tool results in messages); reference is",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_called(
    evalstone: Evalstone, app: str, tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    given = [each.replace("APP", app) for each in options]
    done = evalstone("run", "d.jsonl", *([] if "-s" in given else RIGHT), *given)
    assert done.returncode == 2
    assert problem in done.stderr
    assert calls(tmp_path) == 0


def started(folder: Path, app: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evalstone", "run", "d.jsonl", "--target", f"{app}:slow", "--trials", "30", *RIGHT]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while calls(folder) < 12 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return process


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.slow
def test_ctrl_c_ends_the_calls_in_flight_and_the_run_goes_on_later(
    evalstone: Evalstone, app: str, tmp_path: Path, times: int
) -> None:
    process = started(tmp_path, app)
    try:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while "to force" not in (line := process.stderr.readline()):
            assert line
        if times == 2:
            process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "same command" in told
    assert "Traceback" not in told
    assert calls(tmp_path) < 60
    (tmp_path / "fast").touch()
    done: Done = evalstone("run", "d.jsonl", "--target", f"{app}:slow", "--trials", "30", *RIGHT, "-q", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["resumed"] > 0
    twice = calls(tmp_path) - 120
    assert twice == 0 if times == 1 else twice <= 8


@pytest.mark.parametrize("json_out", [True, False])
def test_what_a_target_prints_is_not_in_the_results(evalstone: Evalstone, tmp_path: Path, json_out: bool) -> None:
    (tmp_path / f"loud_{json_out}.py").write_text(
        "print('imported')\ndef agent(*, input):\n    print('called')\n    return input\n"
        "def loud(*, output):\n    print('scored')\n    return 1.0\n"
    )
    (tmp_path / "loud.jsonl").write_text('{"input": "a"}\n')
    option = ["--json"] if json_out else ["--html", "-"]
    done = evalstone(
        "run", "loud.jsonl", "--target", f"loud_{json_out}:agent", "--scorer", f"loud_{json_out}:loud", "-q", *option
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{" if json_out else "<!")
    for word in ("called", "scored"):
        assert word in done.stderr.splitlines()
        assert word not in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "option"),
    [("end_1", ["--target", "end_1:f"]), ("end_2", ["--target", "end_2.py:f"]), ("end_3", ["--scorer", "end_3:f"])],
)
def test_code_that_ends_the_process_does_not_look_like_success(
    evalstone: Evalstone, tmp_path: Path, name: str, option: list[str]
) -> None:
    (tmp_path / f"{name}.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "one.jsonl").write_text('{"input": "a", "output": "b"}\n')
    done = evalstone("run", "one.jsonl", "-q", *option)
    assert done.returncode == 2
    assert f"imported: SystemExit: 0 ({name}.py, line 2)" in done.stderr


def test_a_call_that_ends_the_process_is_a_failure(evalstone: Evalstone, tmp_path: Path) -> None:
    (tmp_path / "quitter.py").write_text(
        "import sys\ndef agent(*, input):\n    return input if input != 'b' else sys.exit(0)\n"
    )
    (tmp_path / "two.jsonl").write_text('{"input": "a"}\n{"input": "b"}\n')
    done = evalstone("run", "two.jsonl", "--target", "quitter:agent", "--scorer", "contains(expected=a)", "-q")
    assert done.returncode == 5
    assert "SystemExit: 0 (quitter.py" in done.stdout
    assert ", line 3)" in done.stdout


TALK = """\
def agent(*, messages):
    return f"right {len(messages)}"

def user(*, turn):
    return "more" if turn < 3 else None
"""


def test_a_user_talks_to_a_target_in_turns(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    (tmp_path / f"{app}_talk.py").write_text(TALK)
    (tmp_path / "d.jsonl").write_text('{"id": "a", "turns": ["Hi", "Bye", "Well?"]}\n{"id": "b", "input": "Hello"}\n')
    user = ("--target", f"{app}_talk:agent", "--user", f"{app}_talk:user")
    done = evalstone("run", "d.jsonl", *user, *RIGHT, "-o", "out", "-q")
    assert done.returncode == 0, done.stderr
    assert f"target {app}_talk:agent · user {app}_talk:user" in " ".join(done.stdout.split())
    rows = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert [[turn["output"] for turn in row["turns"]] for row in rows] == [
        ["right 1", "right 3", "right 5"],
        ["right 1", "right 3"],
    ]
    again = evalstone("run", "out/samples.jsonl", "--target", f"{app}_talk:agent", *RIGHT, "-o", "again", "-q")
    assert again.returncode == 0, again.stderr
    dry = evalstone("run", "d.jsonl", *user, *RIGHT, "--dry-run")
    assert "calls: at most 13; " in dry.stdout
    played = evalstone("run", "d.jsonl", *user[:2], "--user", "openai/gpt-5.1", *RIGHT, "--dry-run")
    assert "calls: at most 3; " in played.stdout  # the other sample has no goal
    (tmp_path / "d.jsonl").write_text('{"id": "a", "goal": "Get it right."}\n')
    played = evalstone("run", "d.jsonl", *user[:2], "--user", "openai/gpt-5.1", *RIGHT, "--dry-run")
    assert "openai/gpt-5.1, which" in played.stdout
    assert " each and once" in played.stdout


def test_a_file_names_a_user_beside_it(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / f"{app}_talk.py").write_text(TALK)
    (folder / "d.jsonl").write_text('{"id": "b", "input": "Hello"}\n')
    lines = f'data = "d.jsonl"\nscorers = ["contains(expected=right)"]\ntarget = "{app}_talk:agent"\n'
    users = {
        f'user = "{app}_talk.py:user"': 2,
        f'[user]\nfunction = "{app}_talk:user"\nmax_turns = 1': 1,
        'user = ["a", "b", "c"]': 4,
    }
    for user, turns in users.items():
        (folder / "run.toml").write_text(lines + user + "\n")
        done = evalstone("run", "sub/run.toml", "-o", "out", "-q")
        assert done.returncode == 0, done.stderr
        row = json.loads((tmp_path / "out" / "samples.jsonl").read_text())
        assert len(row["turns"]) == turns
    (folder / "run.toml").write_text(lines + "user = 3\n")
    assert re.search(r"toml: user .*, not 3", evalstone("run", "sub/run.toml", "-q").stderr)


TOOLS = """
from evalstone.targets import Tools

@Tools()
def search(query):
    with open("calls", "a") as file:
        file.write(query + chr(10))
    return query + " found"

def agent(*, input):
    return search(input)
"""


def test_tools_are_recorded_and_replayed_by_an_option_and_by_a_file(evalstone: Evalstone, tmp_path: Path) -> None:
    (tmp_path / "tools_app.py").write_text(TOOLS)
    (tmp_path / "two.jsonl").write_text('{"id": "a", "input": "a"}\n{"id": "b", "input": "b"}\n')
    run = ("run", "two.jsonl", "--target", "tools_app:agent", "-s", "contains(expected=found)", "-q")
    done = evalstone(*run, "--target-tools", "record:sub.jsonl")
    assert (done.returncode, calls(tmp_path)) == (0, 2), done.stderr
    done = evalstone(*run, "--target-tools", "replay:sub.jsonl", "-o", "out")
    assert (done.returncode, calls(tmp_path)) == (0, 2), done.stderr
    identity = json.loads((tmp_path / "out" / "summary.json").read_text())["target"]["identity"]
    assert identity.startswith("tools_app:agent ")
    assert "replay:sub.jsonl@" in identity
    # Paths in a file are relative to it.
    folder = tmp_path / "below"
    folder.mkdir()
    (folder / "run.toml").write_text(
        'data = "../two.jsonl"\nscorers = ["contains(expected=found)"]\n'
        '[target]\naddress = "../tools_app.py:agent"\ntools = "replay:../sub.jsonl"\n'
    )
    done = evalstone("run", str(folder / "run.toml"), "-q")
    assert (done.returncode, calls(tmp_path)) == (0, 2), done.stderr
    (folder / "grid.toml").write_text(
        'data = "../two.jsonl"\nscorers = ["contains(expected=found)"]\n[experiment]\ntargets = [\n'
        '  { name = "then", address = "../tools_app.py:agent", tools = "replay:../sub.jsonl" },\n'
        '  { name = "now", address = "../tools_app.py:agent" },\n]\n'
    )
    done = evalstone("run", str(folder / "grid.toml"), "-q")
    assert (done.returncode, calls(tmp_path)) == (0, 4), done.stderr


def test_what_is_wrong_with_the_tools_is_said_before_anything_is_called(evalstone: Evalstone, tmp_path: Path) -> None:
    (tmp_path / "tools_app2.py").write_text(TOOLS)
    (tmp_path / "one.jsonl").write_text('{"id": "a", "input": "a"}\n')
    run = ("run", "one.jsonl", "--target", "tools_app2:agent", "-s", "contains(expected=found)", "-q")
    for tools, problem in (
        ("replay:no.jsonl", "no.jsonl can't be read: No such file"),
        ("record:no/no.jsonl", "no/no.jsonl'"),
        ("mock:x", "tools must be Tools, or record:FILE or replay:FILE, not 'mock:x'"),
    ):
        done = evalstone(*run, "--target-tools", tools)
        assert done.returncode == 2
        assert problem in done.stderr
    done = evalstone("run", "one.jsonl", "--target", "cmd:cat", "--target-tools", "record:x", *RIGHT, "-q")
    assert done.returncode == 2
    assert "unknown setting 'tools'" in done.stderr
    assert calls(tmp_path) == 0


def test_a_run_in_the_ledger_is_a_target(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    ledger = ("--ledger", "runs.db", "-q")
    first = evalstone("run", "d.jsonl", "--target", f"{app}:agent", "--trials", "2", *RIGHT, *ledger, "--name", "base")
    assert first.returncode == 5, first.stderr
    made = calls(tmp_path)
    replay = ("run", "d.jsonl", "--trials", "2", *RIGHT, *ledger)
    figures = [line.split()[:5] for line in first.stdout.splitlines() if line.startswith("contains ")]
    for name in ("base", "last"):
        done = evalstone(*replay, "--target", f"replay:{name}")
        assert done.returncode == 5, done.stderr
        assert [line.split()[:5] for line in done.stdout.splitlines() if line.startswith("contains ")] == figures
    done = evalstone(*replay, "--target", "replay:base", "--dry-run")
    assert (done.returncode, done.stdout.count("calls: 2 (6 answers")) == (0, 1), done.stdout
    (tmp_path / "grid.toml").write_text(
        f'data = "d.jsonl"\ntrials = 2\nledger = "runs.db"\nscorers = ["contains(expected=right)"]\n[experiment]\n'
        f'targets = ["{app}:free", "replay:base"]\n'
    )
    done = evalstone("run", "grid.toml", "-q")
    assert done.returncode == 5, done.stderr
    assert "base" in done.stdout
    assert calls(tmp_path) == made
    for more, problem in (
        (["--ledger", "other.db"], "no run of that id or name in the ledger other.db"),
        ([], "no run"),
    ):
        done = evalstone("run", "d.jsonl", *RIGHT, "-q", "--target", "replay:base", *more)
        assert done.returncode == 2
        assert problem in done.stderr
