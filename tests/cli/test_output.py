"""What every command does with its output: where it goes, and what is left out of it."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from rich.console import Group
from rich.text import Text

from evalstone import write_run
from evalstone._core import phases, redaction
from evalstone.cli import output
from evalstone.cli.options import Outputs
from evalstone.errors import ConfigError, EvalstoneWarning
from evalstone.ledger.store import Ledger
from evalstone.ledger.views import metadata_text
from evalstone.report.view import JUDGE_WIDTH, bare_judge, bare_judges, bare_member
from tests.cli.conftest import Evalstone
from tests.runs import run_of

SECRET = "sk-proj-" + "a1B2" * 12


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    known = redaction.Redactor()
    known.register(SECRET)
    monkeypatch.setattr(redaction, "_PROCESS", known)
    monkeypatch.setattr(output, "redacted", known.redacted)


def stdout_of(monkeypatch: pytest.MonkeyPatch, encoding: str, newline: str) -> io.BytesIO:
    """What is written to standard output, with the encoding and the ends of lines of the machine."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, newline=newline))
    return raw


def never() -> Iterable[str]:
    raise AssertionError("nothing may be computed")


def test_what_goes_to_standard_output_is_utf8_with_the_ends_of_lines_it_has_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdout = stdout_of(monkeypatch, "cp1252", "\r\n")
    assert output.deliver({"csv": ("-", lambda: ["a,b\r\n", f"→,{SECRET}\n"]), "html": (None, never)})
    sys.stdout.flush()
    assert stdout.getvalue() == "a,b\r\n→,***\n".encode()


def test_files_are_written_before_standard_output_and_all_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdout_of(monkeypatch, "utf-8", "\n")
    file = tmp_path / "page.html"

    def after_the_file() -> Iterable[str]:
        assert file.read_text(encoding="utf-8") == "page"
        return ["text"]

    outputs: dict[str, output.Output] = {
        "markdown": ("-", after_the_file),
        "html": (str(file), lambda: ["page"]),
        "csv": (None, never),
    }
    assert output.deliver(outputs)
    assert output.written(outputs) == str(file)
    del outputs["markdown"]
    assert not output.deliver(outputs)


def test_only_one_format_goes_to_standard_output(tmp_path: Path) -> None:
    problem = "^only one of --html and --json can go to standard output$"
    with pytest.raises(ConfigError, match=problem):
        output.check_outputs({"markdown": None} | Outputs(html="-", as_json=True).files)
    with pytest.raises(ConfigError, match=problem):
        output.deliver({"html": ("-", never), "json": ("-", never)})
    output.check_outputs({"html": str(tmp_path / "page.html"), "markdown": "-"})
    with pytest.raises(ConfigError, match="none"):
        output.check_outputs({"html": str(tmp_path / "none" / "page.html")})


def test_two_outputs_do_not_go_to_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("page")
    for file in ("page", "./page", str(tmp_path / "page"), "link"):
        with pytest.raises(ConfigError, match="--html and --csv"):
            output.check_outputs({"html": "page", "markdown": "other", "csv": file})
        with pytest.raises(ConfigError, match="--html and --csv"):
            output.deliver({"html": ("page", never), "csv": (file, never)})
    assert not (tmp_path / "page").exists()
    output.check_outputs({"html": os.devnull, "csv": os.devnull})


@pytest.mark.parametrize(
    "call",
    [
        ("run", "data.jsonl", "--scorer", "contains(expected=Paris)"),
        ("audit", "data.jsonl"),
        ("calibrate", "--labels", "data.jsonl"),
        ("calibrate", "--labels", "labels.csv", "--data", "data.jsonl"),
    ],
    ids=lambda call: " ".join(call),
)
@pytest.mark.parametrize("kind", ["html", "markdown", "csv"])
def test_a_command_does_not_overwrite_what_it_reads(
    tmp_path: Path, evalstone: Evalstone, call: Sequence[str], kind: str
) -> None:
    row = '{"output": "Paris.", "context": ["Paris."], "label": 1}\n'
    (tmp_path / "data.jsonl").write_text(row)
    (tmp_path / "labels.csv").write_text("id,label\n1,1\n")
    done = evalstone(*call, f"--{kind}", "./data.jsonl")
    assert done.returncode == 2
    assert f"--{kind}" in done.stderr
    assert (tmp_path / "data.jsonl").read_text() == row


@pytest.mark.parametrize(
    ("columns", "width"), [("", 100_000), ("0", 100_000), ("x", 100_000), ("-5", 100_000), ("7", 7)]
)
def test_piped_output_is_as_wide_as_columns_says_or_unlimited(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.console().width == output.console(stderr=True).width == width


def test_a_secret_is_removed_before_the_layout_cuts_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    right = Text(f"key {SECRET} \x1b[2J", justify="right")
    output.console().print(Group(f"key {SECRET}", right))
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].rstrip() == "key ***"
    assert printed.splitlines()[1].startswith("  ")
    assert SECRET[:8] not in printed
    assert "\x1b" not in printed


def test_lookalikes_are_for_what_is_written_only(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = stdout_of(monkeypatch, "ascii", "\n")
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    output.replace_unprintable()
    print("0.5 ≥ 0.4 → ✓ 日", flush=True)
    assert raw.getvalue() == b"0.5 >= 0.4 > + ?\n"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", output._READABLE)  # pyright: ignore[reportPrivateUsage]


def test_what_python_prints_itself_has_no_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    last = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging, "lastResort", last)
    output.guard()

    def fail() -> None:
        raise ValueError(f"refused: {SECRET} \x1b[2J")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    try:
        fail()
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)
    printed = capsys.readouterr().err
    assert printed.count("ValueError: refused: ***") == 2
    assert warnings.formatwarning("not used\x1b", EvalstoneWarning, "file.py", 1) == "not used\\u001b\n"
    shown = warnings.formatwarning(f"{SECRET} \x1b", UserWarning, "file.py", 1)
    logged = last.format(logging.LogRecord("name", logging.WARNING, "file.py", 1, f"{SECRET} \x1b", None, None))
    for text in (printed, shown, logged):
        assert "***" in text
        assert SECRET not in text
        assert "\x1b" not in text


def test_a_message_is_one_line_and_a_closed_standard_error_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output.to_stderr("a\x1bb" + "c" * 3000)
    (line,) = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line
    assert 1900 < len(line) <= 2000

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    output.to_stderr("lost")


def test_a_judge_is_shown_without_its_settings_and_endpoint_in_a_column() -> None:
    assert bare_judge("vllm/m(https://h/v1)(temperature=0)@2") == "vllm/m@2"
    assert bare_judge("panel (of 3)") == "panel (of 3)"
    assert len(bare_judge("j" * 100)) == JUDGE_WIDTH
    # As it is named with --judge.
    assert bare_judge("decision(systemone/m(http://h), text=sentences@1)") == "systemone/m"
    both = "cascade(decision(a/b, text=sentences@1), decision(a/c, text=openai/m), threshold=0.8)"
    assert bare_judge(both) == "cascade(a/b, decision(a/c, text=openai/m), threshold=0.8)"
    assert bare_member("decision(systemone/m(http://h), text=sentences@1)") == "decision(systemone/m, text=sentences@1)"


def test_judges_whose_bare_names_are_equal_are_told_apart() -> None:
    alone, *same = "openai/m(seed=1)", "vllm/m(http://a:1/v1)", "vllm/m(http://b:1/v1)"
    assert bare_judges([alone, *same, alone]) == {alone: "openai/m", same[0]: same[0], same[1]: same[1]}
    long = [f"panel({'j' * 100}, {last})" for last in "ab"]
    assert bare_judges(long) == dict(zip(long, long, strict=True))


def test_a_text_within_metadata_is_empty_where_there_is_none() -> None:
    metadata = {"dataset": {"name": "a\x1bb"}, "name": None}
    assert "\x1b" not in metadata_text(metadata, "dataset", "name")
    assert metadata_text(metadata, "judge", "identity") == ""
    assert metadata_text(["dataset"], "dataset") == ""


OVERWRITING = {
    "report r --labels given=labels.csv --csv labels.csv": "labels.csv",
    "report r --csv r/records.jsonl": "r/records.jsonl",
    "report r --markdown r/../r/summary.json": "r/summary.json",
    "report r --data samples.jsonl --junit samples.jsonl": "samples.jsonl",
    "report r --html .evalstone/ledger.db": ".evalstone/ledger.db",
    "report r --html l.db --ledger sqlite:///l.db": "l.db",
    "compare r r --labels A:given=labels.csv --csv labels.csv": "labels.csv",
    "gate r --min given=0.1 --labels given=labels.csv --junit labels.csv": "labels.csv",
    "gate r --min given=0.1 --baseline b --csv b/samples.jsonl": "b/samples.jsonl",
    "power r --baseline b --csv b/records.jsonl": "b/records.jsonl",
    "drift r b --markdown b/records.jsonl": "b/records.jsonl",
    "runs r --csv r/summary.json": "r/summary.json",
    "calibrate --labels labels.csv --data samples.jsonl --out samples.jsonl": "samples.jsonl",
    "audit samples.jsonl --csv samples.jsonl": "samples.jsonl",
    "ledger info --ledger l.db --csv l.db": "l.db",
    "live coverage s --ledger l.db --csv l.db": "l.db",
    "score -s contains --output x --ledger l.db --csv l.db": "l.db",
    "run samples.jsonl -s contains --csv samples.jsonl": "samples.jsonl",
    "run samples.jsonl -s contains --out r --csv r/records.jsonl": "r/records.jsonl",
    "run samples.jsonl -s contains --ledger l.db --csv l.db": "l.db",
    "run samples.jsonl -s contains --out r --ledger r/records.jsonl": "r/records.jsonl",
    "run samples.jsonl -s contains --target my_app:answer --csv my_app.py": "my_app.py",
    "run samples.jsonl -s contains --target my_app:answer --target-version 2 --csv my_app.py": "my_app.py",
    "run samples.jsonl -s contains --target my_app.py:answer --csv my_app.py": "my_app.py",
    "run samples.jsonl -s contains --target my_app:answer --target-tools record:t.jsonl --csv t.jsonl": "t.jsonl",
    "run samples.jsonl -s contains --target my_app:answer --target-tools replay:t.jsonl --csv t.jsonl": "t.jsonl",
    "run samples.jsonl -s contains --target replay:b --csv b/records.jsonl": "b/records.jsonl",
    "run samples.jsonl -s contains --target my_app:chat --user users:user --csv users.py": "users.py",
    "run samples.jsonl -s my_scorers:length --csv my_scorers.py": "my_scorers.py",
    "demo --out r --ledger r/records.jsonl": "r/records.jsonl",
    "demo --csv .evalstone/ledger.db": ".evalstone/ledger.db",
    "run e.toml --csv e.toml": "e.toml",
    "run e.toml --csv samples.jsonl": "samples.jsonl",
}


@pytest.mark.parametrize("call", OVERWRITING)
def test_a_result_never_overwrites_what_the_command_reads(
    tmp_path: Path, evalstone: Evalstone, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("r", "b"):
        write_run(run_of([0.1, 0.5, 0.9]), tmp_path / name)
    (tmp_path / "labels.csv").write_text("id,label\ns1,1\ns2,0\n")
    (tmp_path / "samples.jsonl").write_text('{"id": "s1", "input": "q", "output": "x", "reference": "x"}\n')
    (tmp_path / "e.toml").write_text('data = "samples.jsonl"\nscorers = ["contains"]\n')
    (tmp_path / "t.jsonl").write_text("")
    modules = {
        "my_app": "def answer(*, input): return 'x'\n\n\ndef chat(*, messages): return 'x'\n",
        "users": "def user(*, messages): return 'x'\n",
        "my_scorers": "def length(*, output): return 0.5\n",
    }
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])  # it gets the folder that the modules are from
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.setitem(sys.modules, name, sys)  # so that the one imported is forgotten at the end
        del sys.modules[name]
    (tmp_path / ".evalstone").mkdir()
    for name in ("l.db", ".evalstone/ledger.db"):
        with Ledger(tmp_path / name):
            pass
    file = tmp_path / OVERWRITING[call]
    before = file.read_bytes()
    done = evalstone(*call.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"--\w+ would overwrite ", done.stderr)
    assert file.read_bytes() == before


def test_a_result_may_lie_in_the_results_folder(tmp_path: Path, evalstone: Evalstone) -> None:
    write_run(run_of([0.1, 0.5, 0.9]), tmp_path / "r")
    assert evalstone("report", "r", "--html", "r/report.html", "--csv", "r/scores.csv").returncode == 0
    assert {"report.html", "scores.csv"} < {path.name for path in (tmp_path / "r").iterdir()}


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("run samples.jsonl -s contains --out a/b --csv samples.jsonl", 2),
        ("run samples.jsonl -s contains --out a/b --html none/x.html", 2),
        ("run samples.jsonl -s contains --out a/b --ledger none.jsonl/l.db", 2),
        ("run samples.jsonl -s contains --out a/b --dry-run", 0),
        ("run e.toml --dry-run", 0),
        ("run e.toml --csv samples.jsonl", 2),
    ],
)
def test_a_run_without_results_leaves_no_folder(tmp_path: Path, evalstone: Evalstone, call: str, code: int) -> None:
    (tmp_path / "samples.jsonl").write_text('{"id": "s1", "output": "x", "reference": "x"}\n')
    (tmp_path / "none.jsonl").write_text("")
    (tmp_path / "e.toml").write_text('scorers = ["contains"]\nout = "a/b"\n[experiment]\ndata = ["samples.jsonl"]\n')
    (tmp_path / "kept").mkdir()
    assert evalstone(*call.split()).returncode == code
    assert {path.name for path in tmp_path.iterdir()} == {"samples.jsonl", "none.jsonl", "e.toml", "kept"}


class Phases:
    """The titles of phases that have begun."""

    def __init__(self) -> None:
        self.titles = list[str]()

    def begin(self, phase: phases.Phase) -> None:
        self.titles.append(phase.title)

    def end(self, phase: phases.Phase) -> None:
        pass

    def clear(self) -> None:
        pass


@pytest.mark.parametrize(("to_file", "shown"), [(True, ["writing csv"]), (False, [])])
def test_what_is_redirected_to_a_file_is_written_in_a_phase(
    to_file: bool, shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    file = os.open(tmp_path / "out.csv", os.O_WRONLY | os.O_CREAT)
    before = phases.watch(watched := Phases())
    try:
        with os.fdopen(read), os.fdopen(write, "w") as pipe, os.fdopen(file, "w") as out:
            monkeypatch.setattr(sys, "stdout", out if to_file else pipe)
            assert output.deliver({"csv": ("-", lambda: ["a\n"])})
    finally:
        phases.watch(before)
    assert watched.titles == shown
    assert (tmp_path / "out.csv").read_text() == ("a\n" if to_file else "")


@pytest.mark.parametrize("option", ["--html", "--csv", "--ledger", "--out"])
def test_a_link_to_itself_is_no_file_that_can_be_written(tmp_path: Path, evalstone: Evalstone, option: str) -> None:
    (tmp_path / "data.jsonl").write_text('{"input": "q", "output": "a"}\n')
    (tmp_path / "loop").symlink_to("loop")
    done = evalstone("run", "data.jsonl", "--scorer", "json_valid", option, "loop")
    assert done.returncode == 2
    assert "loop" in done.stderr
    assert "unexpected" not in done.stderr
