"""Commands as targets: what they are given and write, and that no process outlives its call."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evalstone import Failed, evaluate
from evalstone.errors import ConfigError, TargetUnavailable
from evalstone.targets import command as commands
from evalstone.targets import parse_target
from evalstone.targets.command import CommandTarget, ProcessJob
from evalstone.types import Message, Sample
from tests.windows import run_commands_as_windows

BORN = "contains(expected='1815')"
CASES = [{"id": f"q{n}", "input": f"When was Ada born? ({n})", "context": ["Ada was born in 1815."]} for n in range(3)]


def command(code: str) -> str:
    """The address of a Python program."""
    return f"cmd:{shlex.quote(sys.executable)} -S -c {shlex.quote(code)}"


def errors(code: str, n: int = 1, **settings: Any) -> list[str]:
    run = evaluate(CASES[:n], BORN, target={"address": command(code), **settings}, ledger=None)
    return [record.outcome.error for record in run if isinstance(record.outcome, Failed)]


def call(code: str, sample: Sample | None = None, **settings: Any) -> Any:
    target = parse_target({"address": command(code), **settings})
    return asyncio.run(target.call(sample or Sample(input="Hi"), trial=2, thread="t"))  # pyright: ignore


def alive(pid: int) -> bool:
    """Whether a process is there and not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> bool:
    until = time.monotonic() + 5
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


@pytest.fixture(params=["here", "windows"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How commands are run: as on this system, and as on Windows."""
    if request.param == "windows":
        run_commands_as_windows(monkeypatch)


ECHO = "import json, sys; print(json.dumps({'output': sys.stdin.read()}))"


@pytest.mark.usefixtures("system")
def test_the_sample_comes_as_json_and_the_answer_goes_as_json() -> None:
    sample = Sample(
        input="Hi",
        context=["a", "b"],
        metadata={"x": 1},
        output="not for the target",
        reference="nor this",
        messages=[
            Message(role="user", content="Hi"),
            Message(role="assistant", content="a recorded answer"),
        ],
    )
    answer = call(ECHO, sample)
    assert json.loads(answer.output) == {
        "input": "Hi",
        "messages": [{"role": "user", "content": "Hi"}],
        "context": ["a", "b"],
        "instructions": None,
        "metadata": {"x": 1},
        "trial": 2,
        "thread": "t",
    }


def test_a_command_is_evaluated_like_a_function() -> None:
    code = "import json, sys; s = json.load(sys.stdin); print(json.dumps({'output': '1815', 'cost': 0.5, 'state': s}))"
    run = evaluate(CASES, BORN, target=command(code), ledger=None)
    assert run["contains"].mean == 1
    assert run.cost == pytest.approx(1.5)
    assert [sample.state["input"] for sample in run.samples or ()] == [case["input"] for case in CASES]


def test_there_is_no_shell() -> None:
    target = parse_target('cmd:echo \'{"output": "$HOME;ls"}\' ')
    assert asyncio.run(target.call(Sample(input="x"), trial=1, thread="t")).output == "$HOME;ls"  # pyright: ignore


@pytest.mark.parametrize(
    "written",
    [
        [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "In 1815."}],
        {"messages": [{"role": "assistant", "content": "In 1815."}]},
        {"choices": [{"message": {"role": "assistant", "content": "In 1815."}}]},
    ],
)
def test_a_transcript_is_an_answer(written: Any) -> None:
    assert call(f"print({json.dumps(written)!r})").output == "In 1815."


def test_json_lines_are_one_transcript() -> None:
    lines = [{"role": "user", "content": "When?\u2028"}, {"role": "assistant", "content": "In\u2028 1815."}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    answer = call(f"import sys; sys.stdout.buffer.write({text!r}.encode())")
    assert (len(answer.messages), answer.output) == (2, "In\u2028 1815.")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('Hello')", r"nothing but JSON to stdout .*; it wrote 'Hello'; stderr is empty"),
        ("print('Log'); print('{}')", r"it wrote 'Log \{\}'"),
        ("pass", "wrote nothing to stdout; stderr is empty"),
        ("import sys; sys.stdout.buffer.write(bytes([123, 255, 254]))", r"\(line 1: not UTF-8 \(byte 0xff\)\)"),
        ("print('[' * 100000)", "nothing but JSON"),
        ('print(\'{"output": "1815", "cost": NaN}\')', r"JSON to stdout \(line 1: 'NaN' is no finite number\)"),
        ('print(\'{"output": "a", "output": "b"}\')', r"\(line 1: duplicate key 'output' in one object\)"),
        ('print(\'{"role": "user"}\\n{"role": 1, "role": 2}\')', r"\(line 2: duplicate key 'role' in one object\)"),
        ("import sys; sys.exit('No key!')", "ended with exit code 1; stderr ends with: 'No key!'"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("print('3')", r"what is no answer: .*int"),
        (
            "print('{\"cost\": 0.5}')",
            "the target returned no answer: it has nothing to score; stderr",
        ),
        ("print('{\"output\": 3}')", "output must be text, not int: 3"),
        ('print(\'{"outputs": "x"}\')', r"what is no answer: .*dict"),
    ],
)
def test_what_is_no_answer_fails_its_sample_with_what_came(code: str, problem: str) -> None:
    (error,) = errors(code)
    assert error.startswith("the target failed: ")
    assert re.search(problem, error), error


@pytest.mark.usefixtures("system")
def test_stdin_may_be_left_unread_or_closed() -> None:
    sample = Sample(input="x" * 1_000_000)
    assert call('print(\'{"output": "1815"}\')', sample).output == "1815"
    code = 'import os, time; os.close(0); time.sleep(0.05); print(\'{"output": "1815"}\')'
    assert call(code, sample).output == "1815"


@pytest.mark.usefixtures("system")
def test_large_input_and_output_do_not_block_each_other() -> None:
    sample = Sample(input="x" * 3_000_000)
    code = "import json, sys; print(json.dumps({'output': sys.stdin.readline()}))"
    assert len(call(code, sample).output) > 3_000_000


@pytest.mark.usefixtures("system")
def test_a_flood_of_stdout_ends_the_command() -> None:
    code = "import os\nwhile True: os.write(1, b'x' * 65536)"
    (error,) = errors(code, max_output_bytes=1_000_000)
    assert "1,000,000 bytes to stdout" in error
    assert "max_output_bytes" in error


@pytest.mark.usefixtures("system")
def test_a_flood_of_stderr_is_read_and_forgotten() -> None:
    code = "import os\nfor _ in range(500): os.write(2, b'e' * 65536)\nos.write(2, b' the end')\nos._exit(3)"
    (error,) = errors(code)
    assert "exit code 3" in error
    assert error.endswith(" the end'")
    assert len(error) < 1000


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-S", "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
open({file!r}, "a").write(f"{{os.getpid()}} {{child.pid}} ")
{then}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("system")
def test_a_command_that_ignores_sigterm_dies_with_its_children_on_timeout(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = STUBBORN.format(file=str(pids), then="time.sleep(600)")
    started = time.monotonic()
    (error,) = errors(code, timeout=1)
    assert error.endswith("no answer within 1 s")
    assert time.monotonic() - started < 8
    found = [int(pid) for pid in pids.read_text().split()]
    assert len(found) == 2
    assert all(map(wait_for_end, found))


def test_what_a_process_wrote_as_it_ended_is_read_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was quiet for long before that, and the thread that reads is slower than the one that sees the end."""
    monkeypatch.setattr("evalstone.targets.command._has_ended", bool)
    until, ended = time.monotonic() + 0.6, threading.Event()

    class LateReader(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            ended.wait()
            time.sleep(0.02)
            return super().read(size)

    def poll() -> int | None:
        if time.monotonic() < until:
            return None
        ended.set()
        return 0

    process = SimpleNamespace(stdin=io.BytesIO(), stdout=LateReader(b"1815"), stderr=io.BytesIO(), poll=poll)
    found = ProcessJob.exchange(cast("subprocess.Popen[bytes]", process), b"{}", 100, threading.Event())
    assert found == (b"1815", b"", False)


def test_a_child_in_the_background_neither_holds_up_the_answer_nor_stays(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = STUBBORN.format(file=str(pids), then='print(\'{"output": "1815"}\')')
    started = time.monotonic()
    assert call(code).output == "1815"
    assert time.monotonic() - started < 3
    assert all(map(wait_for_end, map(int, pids.read_text().split())))


def test_a_command_has_time_to_end_itself(tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = f"""
import signal, sys, time
def end(*_):
    open({str(said)!r}, "w").write("goodbye")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
time.sleep(600)
"""
    errors(code, timeout=0.5)
    assert said.read_text() == "goodbye"


def children() -> set[str]:
    """The process IDs of this process's children, zombies included."""
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}


@pytest.mark.usefixtures("system")
def test_nothing_is_left_over_from_many_calls() -> None:
    before, threads, own = len([*Path("/proc/self/fd").iterdir()]), threading.active_count(), children()
    code = "import sys, time; time.sleep(600 if 'Ada' in sys.stdin.read() else 0)"
    cases = [{"id": str(n), "input": f"{'Ada' if n % 2 else 'Bob'} {n}"} for n in range(8)]
    run = evaluate(cases, BORN, target={"address": command(code), "timeout": 0.5}, ledger=None)
    assert all(isinstance(record.outcome, Failed) for record in run)
    time.sleep(0.1)
    assert len([*Path("/proc/self/fd").iterdir()]) <= before + 3  # the loop's own
    assert threading.active_count() <= threads + 2
    assert children() <= own
    assert not commands._running  # pyright: ignore[reportPrivateUsage] - another process may get the number


def test_an_interrupt_lets_the_commands_in_flight_end_themselves(tmp_path: Path) -> None:
    pids, said = tmp_path / "pids", tmp_path / "said"
    slow = f"""
import os, signal, sys, time
def end(*_):
    time.sleep(0.3)
    open({str(said)!r}, "a").write("goodbye ")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
open({str(pids)!r}, "a").write(f"{{os.getpid()}} ")
time.sleep(600)
"""
    program = f"""
import evalstone
evalstone.evaluate([{{"input": "x"}}, {{"input": "y"}}], {BORN!r}, target={command(slow)!r}, ledger=None)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 20
    while (not pids.exists() or len(pids.read_text().split()) < 2) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert said.read_text() == "goodbye goodbye "
    assert not any(map(alive, map(int, pids.read_text().split())))


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("cmd:no-such-program --x", "there is no program 'no-such-program', which the target cmd:no-such-program --x"),
        ("cmd:./script.sh", "script.sh is not executable"),
        ("cmd:", "cmd: needs a command"),
        ("cmd:echo 'x", r"can't be read: No closing quotation"),
    ],
)
def test_a_command_that_cannot_run_is_refused_before_the_run(
    address: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.sh").write_text("echo")
    with pytest.raises(ConfigError, match=problem):
        evaluate(CASES, BORN, target=address, ledger=None)


def test_a_file_that_is_no_program_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script").write_text("echo")
    Path("script").chmod(0o755)
    with pytest.raises(TargetUnavailable, match=r"\./script .*Exec format"):
        evaluate(CASES, BORN, target="cmd:./script", ledger=None)


def test_a_secret_in_the_command_is_not_shown() -> None:
    assert parse_target("cmd:x --key=sk-1234567890").name == "cmd:x --key=***"


@pytest.mark.parametrize(
    "form", ["--token={}", "--token {}", "-H 'Private-Token: {}'", "-e API_TOKEN={}", "-u me:{}", "-c 'pat={} agent'"]
)
def test_a_secret_in_a_command_is_neither_shown_nor_part_of_the_identity(form: str) -> None:
    first, second = (CommandTarget(command=f"run {form.format(secret)}").name for secret in ("k7-first", "k8-second"))
    assert first == second == f"cmd:run {form.format('***')}"
    first, second = (CommandTarget(command=f"run {form.format(word)}").name for word in ("alpha", "beta"))
    # A word may be no secret, and change what the command answers.
    assert first != second
    assert first.startswith(f"cmd:run {form.format('***')} (")


def test_a_long_command_has_a_short_name_of_its_own() -> None:
    names = {parse_target(f"cmd:agent {'x' * 200} {more}").name for more in ("a", "b", "'\n'")}
    assert len(names) == 3
    assert all(len(name) < 140 and "\n" not in name for name in names)


@pytest.mark.parametrize("option", ["--token", "--openai-key", "--secret"])
def test_the_value_of_an_option_for_a_secret_is_not_shown(option: str) -> None:
    secret = f"value4{option.strip('-')}-5678"
    target = CommandTarget(command=f"agent {option} {secret} --fast")
    assert target.name == f"cmd:agent {option} *** --fast"


def test_a_backslash_is_a_part_of_a_path_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS", "C:\\my agents")
    monkeypatch.setattr("evalstone._core.environment.os", SimpleNamespace(**{**vars(os), "name": "nt"}))
    words = CommandTarget(command=r'''"C:\a b\agent.exe" $AGENTS\rag.py '--as' "$AGENTS\x" '$AGENTS' $$5 ""''').words
    assert words == [
        "C:\\a b\\agent.exe",
        "C:\\my agents\\rag.py",
        "--as",
        "C:\\my agents\\x",
        "$AGENTS",
        "$5",
        "",
    ]
    with pytest.raises(ConfigError, match=r"the command '\"C:\\agent.exe' can't be read"):
        CommandTarget(command='"C:\\agent.exe')
