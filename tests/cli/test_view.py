"""`evalstone view`: what it serves, and what it refuses to start with."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from evalstone import evaluate, write_run
from tests.cli.conftest import Evalstone
from tests.runs import Given, run_of, samples_of

pytest.importorskip("uvicorn", reason="needs the extra view")
Serve = Callable[..., tuple["subprocess.Popen[str]", str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts the command, and returns the process and the address that it prints."""
    started: list[subprocess.Popen[str]] = []

    def starting(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "evalstone", "view", "--port", "0", *arguments]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        return process, found[0]

    yield starting
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


@pytest.mark.slow
def test_it_serves_until_it_is_stopped(tmp_path: Path, serve: Serve) -> None:
    run = evaluate(samples_of(["0.5"]), [Given()], ledger=str(tmp_path / ".evalstone" / "ledger.db"), name="nightly")
    process, address = serve()
    with urlopen(address) as reply:
        assert run.id in reply.read().decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


@pytest.mark.slow
def test_a_run_that_is_named_is_opened_and_folders_are_listed(tmp_path: Path, serve: Serve) -> None:
    run = evaluate(samples_of(["0.5"]), [Given()], ledger=str(tmp_path / "own.db"), name="nightly")
    write_run(other := run_of(["1"]), tmp_path / "results" / "one")
    _, address = serve("nightly", "results", "--ledger", "own.db")
    assert address.endswith(f"/runs/{run.id}")
    with urlopen(address.partition("/runs/")[0]) as reply:
        assert other.id in reply.read().decode()


@pytest.mark.slow
def test_the_only_run_in_the_folders_is_opened(tmp_path: Path, serve: Serve) -> None:
    evaluate(samples_of(["0.5"]), [Given()], ledger=str(tmp_path / ".evalstone" / "ledger.db"))
    write_run(only := run_of(["1"]), tmp_path / "results" / "one")
    assert serve("results")[1].endswith(f"/runs/{only.id}")
    write_run(run_of(["0"]), tmp_path / "results" / "two")
    assert serve("results")[1].endswith("/")


@pytest.mark.slow
def test_an_experiment_that_is_named_is_opened_and_started(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data.jsonl").write_text('{"output": "right"}')
    lines = ['name = "first"', 'ledger = "own.db"', 'scorers = ["contains(expected=right)"]', "[experiment]"]
    (tmp_path / "elsewhere" / "exp.toml").write_text("\n".join([*lines, 'data = ["data.jsonl"]']))
    _, address = serve("elsewhere/exp.toml")
    assert address.endswith("/experiments/first")
    with urlopen(address) as reply:
        fields = dict(re.findall('type="hidden" name="([^"]*)" value="([^"]*)"', reply.read().decode()))
    origin = address.removesuffix("/experiments/first")
    sent = Request(f"{origin}/experiments/start", urlencode(fields).encode(), {"Origin": origin})
    with urlopen(sent) as reply:
        assert reply.url == f"{address}?file=elsewhere%2Fexp.toml"
    until = time.monotonic() + 60
    while b"Complete." not in (page := urlopen(address).read()):
        assert time.monotonic() < until, page
        time.sleep(0.1)
    _, other = serve("elsewhere/exp.toml", "--host", "0.0.0.0", "--ledger", str(tmp_path / "elsewhere" / "own.db"))
    with build_opener(HTTPCookieProcessor()).open(other) as reply:
        page = reply.read().decode()
    assert "from pages on loopback only" in page
    assert "experiments/start" not in page


@pytest.mark.slow
def test_an_address_beyond_loopback_needs_a_token(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(run_of(["1"]), tmp_path / "results")
    _, address = serve("results", "--host", "0.0.0.0")
    assert re.search(r"\?token=\S{20,}", address)
    _, own = serve("results", "--token", "mine")
    assert own.endswith("?token=mine")
    monkeypatch.setenv("MY_TOKEN", "t-0c1d2e3f")
    _, named = serve("results", "--token", "$MY_TOKEN")
    assert named.endswith("?token=$MY_TOKEN")
    with build_opener(HTTPCookieProcessor()).open(named.replace("$MY_TOKEN", "t-0c1d2e3f")) as reply:
        assert reply.status == 200


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "ledger"),
        (["--ledger", "none.db"], "none.db"),
        (["nightly"], "ledger"),
        (["results", "--host", "256.1.1.1"], "256"),
        (["results", "--host", "0.0.0.0", "--token", ""], "--token"),
        (["results", "--host", "0.0.0.0", "--token", "  "], "--token"),
        (["results", "--token", "\udcff"], "--token"),
        (["results", "--token", "$NOT_SET"], "--token needs the environment variable NOT_SET"),
        (["results", "--datasets", "results"], "ledger"),
    ],
)
def test_it_doesnt_start_with_nothing_to_show(
    tmp_path: Path, evalstone: Evalstone, arguments: list[str], named: str
) -> None:
    write_run(run_of(["1"]), tmp_path / "results")
    done = evalstone("view", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert not (tmp_path / ".evalstone").exists()


@pytest.mark.parametrize(("folder", "named"), [("none", "none"), ("results", "a results folder"), ("own.db", "own.db")])
def test_a_folder_that_is_not_for_datasets_is_an_error(
    tmp_path: Path, evalstone: Evalstone, folder: str, named: str
) -> None:
    evaluate(samples_of(["0.5"]), [Given()], ledger=str(tmp_path / "own.db"))
    write_run(run_of(["1"]), tmp_path / "results")
    done = evalstone("view", "--ledger", "own.db", "--datasets", folder)
    assert (done.returncode, named in done.stderr) == (2, True), done.stderr


def test_a_port_that_is_taken_is_an_error_if_it_was_asked_for(tmp_path: Path, evalstone: Evalstone) -> None:
    write_run(run_of(["1"]), tmp_path / "results")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = evalstone("view", "results", "--port", port)
    assert (done.returncode, port in done.stderr) == (2, True)
