"""Experiments that pages start: which files may be started, by whom, and what becomes of the process."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalstone import evaluate
from evalstone.cli.experiment import experiment_in
from evalstone.cli.view import NOT_HERE, NOT_ON_WINDOWS
from evalstone.ledger.store import Ledger
from evalstone.run.experiment_cells import in_experiment
from evalstone.types import StoredCell
from evalstone.view.app import application
from evalstone.view.experiment_files import ExperimentFiles
from evalstone.view.experiments import Experiments
from evalstone.view.shelf import Shelf
from tests.runs import Given, samples_of
from tests.view.conftest import Client, Reply
from tests.view.test_pages import unfinished

AGENT = """
import os, time

def agent(*, input, style="a"):
    with open("calls", "a") as calls:
        print(os.getpid(), style, input, file=calls)
    while not os.path.exists("go"):
        time.sleep(0.01)
    return "right"
"""
FILE = """
data = "data.jsonl"
scorers = ["contains(expected=right)"]
[experiment]
targets = "{target}"
[experiment.parameters]
style = ["a", "b"]
"""
HOSTILE = "<script>alert(1)</script> \u202e & more"


@pytest.fixture
def folder(tmp_path: Path, url: str) -> Path:
    """A folder with the file of an experiment of two cells of three samples, and a ledger."""
    Ledger(url).close()
    (tmp_path / "agents.py").write_text(AGENT)
    rows = [{"id": f"q{n}", "input": f"question {n}"} for n in range(3)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "exp.toml").write_text(FILE.format(target="agents:agent"))
    return tmp_path


def pages_of(url: str, folder: Path, *named: str, refusal: str = "", read_only: bool = False) -> Client:
    """Pages that were started in a folder."""
    shelf = Shelf(url, read_only=read_only)
    files = ExperimentFiles(folder, [*named], experiment_in)
    return Client(application(shelf, experiments=Experiments(shelf, files, refusal)))


def form_of(page: Reply, action: str) -> dict[str, str]:
    """The fields of a form of a page; none without the form."""
    found = re.search(f'<form method="post" action="/experiments/{action}".*?</form>', page.text, re.DOTALL)
    return dict(re.findall('name="([^"]*)" value="([^"]*)"', found[0])) if found else {}


def said(page: Reply) -> str:
    """The words of a page, as they are read."""
    return html.unescape(page.words)


def send(client: Client, page: Reply, action: str) -> Reply:
    """Press the button of a page."""
    fields = form_of(page, action)
    return client.post(f"/experiments/{action}", fields, token=fields["token"])


def until(client: Client, words: str, address: str = "/experiments/exp") -> Reply:
    """The page, once it says so."""
    end = time.monotonic() + 60
    while words not in said(page := client.get(address)):
        assert time.monotonic() < end, page.words[:1500]
        time.sleep(0.05)
    return page


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_file_is_shown_as_its_matrix_before_it_runs(folder: Path, url: str) -> None:
    client = pages_of(url, folder)
    page = client.get("/experiments/exp")
    assert page.status == 200
    assert "2 cells · not yet run" in page.words
    assert "style = a style = b cell not yet run not yet run" in page.words
    assert "runs evalstone run exp.toml --ledger" in page.words
    assert form_of(page, "start")["file"] == "exp.toml"
    assert form_of(page, "stop") == {}
    assert "/experiments/exp" in client.get("/experiments").links("^/experiments/[^.]*$")
    (row,) = client.get("/experiments.json").json
    assert (row["file"], row["state"], row["cells"], row["complete"]) == ("exp.toml", "not yet run", 2, 0)
    assert client.get("/experiments.csv").text.splitlines()[1].startswith('"exp","exp.toml","not yet run",2,0')
    assert [cell["state"] for cell in client.get("/experiments/exp.json").json["cells"]] == ["waiting"] * 2


@pytest.mark.slow  # starts the command four times
def test_an_experiment_survives_the_pages_and_is_stopped_resumed_and_killed(folder: Path, url: str) -> None:
    def calls() -> list[str]:
        return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []

    client = pages_of(url, folder)
    page = client.get("/experiments/exp")
    with ThreadPoolExecutor(4) as pool:  # several clicks
        replies = [click.result() for click in [pool.submit(send, client, page, "start") for _ in range(4)]]
    assert {reply.status for reply in replies} == {303}
    assert replies[0].headers["location"] == "/experiments/exp?file=exp.toml"
    wait_for(lambda: len(calls()) == 3)
    assert len({line.split()[0] for line in calls()}) == 1

    running = until(client := pages_of(url, folder), "0 of 6 results")  # the pages were started again
    assert "Running: 0 of 2 cells complete" in running.words
    assert running.headers["refresh"]
    assert form_of(running, "start") == {}
    assert send(client, running, "stop").status == 303
    assert send(client, running, "stop").status == 303  # the second click doesn't force it
    stopping = client.get("/experiments/exp")
    assert "Stopping, after the calls in flight" in stopping.words
    assert form_of(stopping, "stop")["again"] == "1"
    (folder / "go").touch()
    stopped = until(client, "Stopped: 1 of 2 cells complete.")
    assert "Stopping; waiting for calls in flight." in stopped.words
    assert ">Resume</button>" in stopped.text
    assert client.get("/experiments.json").json[0]["state"] == "interrupted"

    (folder / "go").unlink()
    old = {**form_of(stopped, "start"), "seen": ""}  # a page that knows nothing of the start
    assert client.post("/experiments/start", old, token=old["token"]).status == 303
    assert "Stopped" in client.get("/experiments/exp").words
    send(client, stopped, "start")
    wait_for(lambda: len(calls()) == 6)
    assert [line.split()[1] for line in calls()] == [*"aaabbb"]  # the calls that were in flight were kept
    running = until(client, "1 of 2 cells complete, 3 of 6 results")
    os.kill(int(next(folder.glob("experiments/*/process")).read_text().split()[0]), signal.SIGKILL)
    killed = until(client, "Resume runs evalstone run")  # once it is reaped
    assert "The process was killed: 1 of 2 cells complete." in killed.words
    (folder / "go").touch()
    send(client, killed, "start")
    complete = until(client, "Complete.")
    assert len(calls()) == 9
    assert "1.000" in complete.words
    assert ">Start again</button>" in complete.text

    (folder / "exp.toml").write_text(FILE.format(target="gone:agent"))
    send(client, client.get("/experiments/exp"), "start")
    failed = until(client, "It ended with exit code 2 (could not start): 0 of 2 cells complete.")
    assert "<details open><summary>Output" in failed.text
    assert "evalstone: " in failed.words.partition("Output")[2]
    assert "gone" in failed.words.partition("Output")[2]


def test_only_files_in_the_list_are_started(folder: Path, url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "other.toml").write_text(FILE.format(target="agents:agent"))
    for hidden in (".hidden", "node_modules", "env"):
        (folder / hidden).mkdir()
        (folder / hidden / "exp.toml").write_text(FILE.format(target="agents:agent"))
    (folder / "env" / "pyvenv.cfg").touch()
    (folder / "link.toml").symlink_to(outside / "other.toml")
    (folder / "linked").symlink_to(outside)
    (folder / "settings.toml").write_text('[tool]\nexperiment = "no table"')
    (folder / "run.toml").write_text('data = "experiment.jsonl"')
    client = pages_of(url, folder)
    listed = [row["file"] for row in client.get("/experiments.json").json]
    assert listed == ["exp.toml", "settings.toml"]
    fields = form_of(client.get("/experiments/exp"), "start")
    paths = [str(outside / "other.toml"), f"../{outside.name}/other.toml", "link.toml", "./exp.toml", "run.toml"]
    for path in [*paths, ".hidden/exp.toml", str(folder / "exp.toml"), "exp.toml\0", "--help"]:
        reply = client.post("/experiments/start", {**fields, "file": path}, token=fields["token"])
        assert (reply.status, "no file" in reply.words) == (409, True), path
    assert client.post("/experiments/start", {**fields, "file": ""}, token=fields["token"]).status == 400
    assert not (folder / "experiments").exists()
    named = pages_of(url, folder, str(outside / "other.toml"))
    assert form_of(named.get("/experiments/other"), "start")["file"] == str(outside / "other.toml")


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("read-only", "started with --read-only"),
        ("beyond loopback", "from pages on loopback only"),
        ("on Windows", "aren't started from pages on Windows"),
        ("another ledger", "own.db, which these pages don't show"),
        ("running", "It runs in a process that wasn't started here."),
        ("invalid", "exp.toml can't be started:"),
        ("too many", "54,000 cells; 10,000 are the most"),
    ],
)
def test_nothing_is_started_where_it_may_not_be(folder: Path, url: str, why: str, words: str) -> None:
    evaluate(samples_of(["0.5"]), [Given()], ledger=url)
    text = (folder / "exp.toml").read_text()
    many = "".join(f"{name} = {[*range(30)]}\n" for name in "xyz")
    changed = {
        "another ledger": f'ledger = "own.db"\n{text}',
        "invalid": f"judges = 1\n{text}",
        "too many": text + many,
    }
    (folder / "exp.toml").write_text(changed.get(why, text))
    refusal = {"beyond loopback": NOT_HERE, "on Windows": NOT_ON_WINDOWS}.get(why, "")
    client = pages_of(url, folder, refusal=refusal, read_only=why == "read-only")
    if why == "running":
        with in_experiment(StoredCell(experiment="exp", name="style=a", factors={"style": "a"})):
            unfinished(url, evaluate(samples_of(["0.5"]), [Given()], ledger=url).id, running=True)
    page = client.get("/experiments/exp")
    assert (page.status, form_of(page, "start"), words in said(page)) == (200, {}, True)
    reply = client.post("/experiments/start", {"file": "exp.toml", "seen": ""})
    assert (reply.status, words in said(reply)) == (403 if why == "read-only" else 409, True)
    assert not (folder / "experiments").exists()


def test_a_form_without_the_token_starts_nothing(folder: Path, url: str) -> None:
    client = pages_of(url, folder)
    fields = form_of(client.get("/experiments/exp"), "start")
    token = fields.pop("token")
    for wrong in ({"token": ""}, {"token": "x"}):
        assert client.post("/experiments/start", fields, **wrong).status == 403
    for headers in ({"origin": "http://evil.test"}, {"origin": ""}, {"content_type": "text/plain"}):
        assert client.post("/experiments/start", fields, token=token, **headers).status == 403
    assert client.get("/experiments/start").status == 404
    assert not (folder / "experiments").exists()


def test_hostile_names_are_text(folder: Path, url: str) -> None:
    text = FILE.format(target="agents:agent").replace('["a", "b"]', json.dumps([HOSTILE, "b"]))
    (folder / "a'b $(touch owned) & <b>.toml").write_text(f"name = {json.dumps(HOSTILE)}\n{text}")
    client = pages_of(url, folder)
    (address,) = client.get("/experiments").links("^/experiments/%3Cscript")
    page = client.get(address)
    assert page.status == 200
    assert "<script>alert" not in page.text + client.get("/experiments").text
    assert "evalstone run 'a'\"'\"'b $(touch owned) & <b>.toml'" in said(page)
    assert html.unescape(form_of(page, "start")["file"]) == "a'b $(touch owned) & <b>.toml"


def test_a_file_that_is_gone_leaves_its_runs(folder: Path, url: str) -> None:
    client = pages_of(url, folder)
    fields = form_of(client.get("/experiments/exp"), "start")
    (folder / "exp.toml").unlink()
    assert client.get("/experiments/exp").status == 404
    assert client.post("/experiments/start", fields, token=fields["token"]).status == 409
    with in_experiment(StoredCell(experiment="exp", name="style=a", factors={"style": "a"})):
        evaluate(samples_of(["0.5"]), [Given()], ledger=url)
    page = client.get("/experiments/exp")
    assert (page.status, form_of(page, "start")) == (200, {})
    assert "1 cell" in page.words


def test_cells_that_the_file_no_longer_has_are_marked(folder: Path, url: str) -> None:
    for name in ("style=a", "style=old"):
        with in_experiment(StoredCell(experiment="exp", name=name, factors={"style": name[6:]})):
            evaluate(samples_of(["0.5"]), [Given()], ledger=url)
    client = pages_of(url, folder)
    page = client.get("/experiments/exp")
    assert "Interrupted: 1 of 2 cells complete." in page.words
    assert page.words.count("not in the file") == 1
    assert ">Resume</button>" in page.text


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may write everywhere")
def test_a_folder_that_cant_be_written_is_an_error_in_words(folder: Path, url: str) -> None:
    client = pages_of(url, folder)
    fields = form_of(client.get("/experiments/exp"), "start")
    folder.chmod(0o500)
    try:
        assert client.post("/experiments/start", fields, token=fields["token"]).status == 403
    finally:
        folder.chmod(0o700)


def test_a_place_that_is_no_folder_is_an_error_in_words(folder: Path, url: str) -> None:
    client = pages_of(url, folder)
    fields = form_of(client.get("/experiments/exp"), "start")
    (folder / "experiments").write_text("")
    reply = client.post("/experiments/start", fields, token=fields["token"])
    assert (reply.status, "can't be started" in said(reply)) == (503, True)


@pytest.mark.parametrize("broken", ["", "{}", "[1]", '{"file": 1'])
def test_damaged_files_of_a_start_are_none(folder: Path, url: str, broken: str) -> None:
    shelf = Shelf(url)
    launches = Experiments(shelf, ExperimentFiles(folder, [], experiment_in)).launches
    assert launches is not None
    at = launches.folder / ("0" * 24)
    at.mkdir(parents=True)
    (at / "start.json").write_text(broken)
    assert launches.all() == []
    launches.stop("0" * 24, "", again=False)
    assert pages_of(url, folder).get("/experiments").status == 200
