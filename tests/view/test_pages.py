"""The pages: runs, a run, a sample, their data, and what is wrong with an address or a run."""

from __future__ import annotations

import csv
import gc
import hashlib
import html
import io
import json
import os
import re
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from evalstone import Sample, Score, Skipped, evaluate, write_run
from evalstone._core.redaction import register_settings
from evalstone.errors import StorageError
from evalstone.ledger.base import INDEXES
from evalstone.ledger.maintenance import prune
from evalstone.ledger.store import Ledger
from evalstone.view.addresses import compare_address, run_address, sample_address
from evalstone.view.indexing import indexes, jobs
from evalstone.view.shelf import Shelf
from tests.runs import Given, Harm, run_of, samples_of
from tests.view.conftest import Client, Reply, client_of, unfinished

ANSWERS = ["0.5", "skip", "0.25", "1", "fail"]


def test_runs_are_listed_by_dataset_with_means_intervals_and_what_is_missing(url: str) -> None:
    for name in ("first", "second"):
        run = evaluate(samples_of(ANSWERS), [Given(), Harm()], ledger=url, name=name, tags=["nightly"])
    reply = client_of(url).get("/")
    assert reply.status == 200
    assert re.findall(r">(first|second)</a>", reply.text) == ["second", "first"]
    interval = run["given"].interval
    assert interval is not None
    assert f"{interval.estimate:.3f}" in reply.words
    assert f"{interval.low:.3f} to {interval.high:.3f}" in reply.words
    assert reply.words.count("1 skipped") == reply.words.count("1 failed") == 4
    assert run_address(run.id) in reply.links("^/runs/")
    assert "nightly" in reply.words
    address = f"{run_address(run.id)}?show=failed&scorer=harm"
    assert f"{address}#samples" in reply.links("show=failed")
    assert [link.partition("?")[0] for link in client_of(url).get(address).links("/samples/")] == [
        sample_address(run.id, "s5")
    ]


def test_runs_are_searched_and_ordered(url: str) -> None:
    for name, answer in (("good", "0.9"), ("bad", "0.1"), ("middle", "0.5")):
        evaluate(samples_of([answer] * 3), [Given(), Harm()], ledger=url, name=name)
    client = client_of(url)

    def names(address: str) -> list[str]:
        return re.findall(r">(good|bad|middle)</a>", client.get(address).text)

    assert names("/") == ["middle", "bad", "good"]
    assert names("/?sort=score:given") == ["good", "middle", "bad"]
    assert names("/?sort=-score:given") == ["bad", "middle", "good"]
    assert names("/?sort=score:harm") == ["bad", "middle", "good"]
    assert names("/?q=MIDDLE") == ["middle"]
    assert [run["name"] for run in client.get("/runs.json?q=good").json] == ["good"]
    rows = list(csv.DictReader(io.StringIO(client.get("/runs.csv").text)))
    assert [(row["name"], row["scorer"], row["mean"]) for row in rows][:2] == [
        ("middle", "given", "0.5"),
        ("middle", "harm", "0.5"),
    ]


def test_a_scorer_over_time_is_drawn_for_runs_on_the_same_samples(url: str) -> None:
    samples = samples_of(["0.5", "0.25", "1"])
    client = client_of(url)
    for number in range(1, 4):
        evaluate(samples, [Given()], ledger=url)
        assert ("given over" in client.get("/").text) is (number == 3)
    assert "given over 3 runs on this version of the dataset: first 0.583, last 0.583" in client.get("/").text
    evaluate(samples_of(["1"]), [Given()], ledger=url)
    assert "given over" not in client.get("/").text


@pytest.mark.parametrize("at_once", [0, 100])
def test_many_new_runs_are_read_together(url: str, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("evalstone.view.shelf.NEW_AT_ONCE", at_once)
    ids = [evaluate(samples_of(["1"]), [Given()], ledger=url).id for _ in range(3)]
    client = client_of(url)
    for _ in range(2):
        assert [run["id"] for run in client.get("/runs.json").json] == ids[::-1]
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("UPDATE runs SET metadata = '{' WHERE id = :run", {"run": ids[0]})
    states = {run["id"]: run["state"] for run in client_of(url).get("/runs.json").json}
    assert states == {ids[0]: "unreadable", ids[1]: "complete", ids[2]: "complete"}


def test_no_garbage_is_looked_for_among_many_runs(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.view.shelf.NEW_AT_ONCE", 1)
    shelf, collects = Shelf(url), gc.isenabled()
    try:
        for new, is_kept in ((1, False), (2, True)):
            for _ in range(new):
                evaluate(samples_of(["1"]), [Given()], ledger=url)
            cards, looked_at = shelf.cards(), gc.get_objects()
            assert [all(card is not each for each in looked_at) for card in cards] == [is_kept] * len(cards)
            assert gc.isenabled() == collects
    finally:
        gc.unfreeze()


def test_many_runs_come_in_pages(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.view.pages.runs.RUNS_PER_PAGE", 2)
    ids = [evaluate(samples_of(["1"]), [Given()], ledger=url).id for _ in range(5)]
    client, address, found = client_of(url), "/", list[str]()
    for _ in range(3):
        page = client.get(address)
        found += [link.removeprefix("/runs/") for link in page.links("^/runs/")]
        address = next(iter(page.links("before=")), "")
    assert sorted(found) == sorted(ids)
    assert address == ""


def test_a_run_shows_its_report_and_all_of_its_samples(url: str) -> None:
    run = evaluate(samples_of(ANSWERS), [Given(), Harm()], ledger=url, name="main")
    client = client_of(url)
    reply = client.get(run_address(run.id))
    assert reply.status == 200
    assert "nothing to say" in reply.words
    assert [link.partition("?")[0] for link in reply.links("/samples/")] == [
        sample_address(run.id, key) for key in ("s1", "s3", "s4", "s2", "s5")
    ]
    assert client.get(f"{run_address(run.id)}?show=failed").links("/samples/") == [
        f"{sample_address(run.id, 's5')}?show=failed"
    ]
    data = client.get(f"{run_address(run.id)}.json?show=skipped").json
    assert (data["matching"], data["run"]["id"], data["next"]) == (1, run.id, None)
    assert data["samples"][0]["scores"] == {name: {"outcome": "skipped", "value": None} for name in ("given", "harm")}
    rows = list(csv.DictReader(io.StringIO(client.get(f"{run_address(run.id)}.csv?sort=order").text)))
    assert [(row["sample_id"], row["given"], row["given outcome"]) for row in rows] == [
        ("s1", "0.5", "score"),
        ("s2", "", "skipped"),
        ("s3", "0.25", "score"),
        ("s4", "1.0", "score"),
        ("s5", "", "failed"),
    ]


def test_a_score_that_is_missing_is_not_a_0(url: str) -> None:
    run = evaluate(samples_of(["0", "skip", "fail"]), [Given()], ledger=url, name="main")
    other = evaluate(samples_of(["0", "0", "0"]), [Given()], ledger=url, name="other")
    client = client_of(url)
    cells = re.findall(r'data-label="given">\s*<span class="value">(.*?)</span>', client.get(run_address(run.id)).text)
    assert cells == ["0", "skipped", "failed"]
    page = client.get(compare_address([run.id, other.id], [("sort", "order")]))
    assert re.findall(r"<li>given <b[^>]*>(.*?)</b>", page.text) == ["0", "0", "skipped", "0", "failed", "0"]


def test_texts_are_cut_in_a_list_and_whole_in_data(url: str) -> None:
    text = "long " * 1000
    run = evaluate([Sample(id="a", input=text, output="0.5", reference="r")], [Given()], ledger=url)
    client = client_of(url)
    page = client.get(run_address(run.id))
    assert page.words.count("…") >= 1
    assert len(page.words) < len(text)
    assert client.get(f"{run_address(run.id)}.json").json["samples"][0]["input"] == text
    (row,) = csv.DictReader(io.StringIO(client.get(f"{run_address(run.id)}.csv").text))
    assert (row["input"], row["reference"]) == (text, "r")


def test_a_sample_of_ten_megabytes_has_a_page_that_says_what_it_leaves_out(url: str) -> None:
    text = "word " * 2_000_000
    run = evaluate([Sample(id="a", input=text, output="0.5")], [Given()], ledger=url)
    client = client_of(url)
    for address in (run_address(run.id), sample_address(run.id, "a")):
        while (page := client.get(address)).status == 202:
            time.sleep(0.05)
        assert page.status == 200
        assert len(page.body) < 300_000
    assert "100,000 of 10,000,000" in page.words
    assert client.get(f"{sample_address(run.id, 'a')}.json").json["sample"]["input"] == text


def test_the_pages_of_a_list_have_all_samples(url: str) -> None:
    run = evaluate(samples_of([n / 200 for n in range(120)]), [Given()], ledger=url)
    client, address, found = client_of(url), f"{run_address(run.id)}.json", list[str]()
    while address:
        page = client.get(address).json
        found += [sample["key"] for sample in page["samples"]]
        address = page["next"]
    assert found == [f"s{n}" for n in range(1, 121)]
    html = client.get(run_address(run.id))
    second = client.get(html.links("after=")[0])
    assert second.links("before=")
    assert len(second.links("/samples/")) == 50


def test_chosen_columns_are_shown(url: str) -> None:
    samples = [Sample(id="a", input="the question", output="0.5", reference="the reference")]
    run = evaluate(samples, [Given()], ledger=url)
    client = client_of(url)
    cell = 'data-label="{}"'
    usual = client.get(run_address(run.id)).text
    # Nothing is chosen: the table is as usual.
    assert client.get(f"{run_address(run.id)}?column=").text == usual
    assert [cell.format(name) in usual for name in ("input", "answer", "reference", "cost")] == [
        True,
        True,
        False,
        False,
    ]
    chosen = client.get(f"{run_address(run.id)}?column=reference&column=cost").text
    assert [cell.format(name) in chosen for name in ("input", "answer", "reference", "cost")] == [
        False,
        False,
        True,
        True,
    ]


def test_a_sample_shows_its_texts_and_outcomes_and_leads_to_the_next_that_matches(url: str) -> None:
    run = evaluate(samples_of(ANSWERS), [Given(), Harm()], ledger=url)
    client = client_of(url)
    reply = client.get(f"{sample_address(run.id, 's3')}?show=score")
    assert reply.status == 200
    for words in ("How much?", "0.25", "says 0.25", "given 0.25"):
        assert words in reply.words
    assert reply.links("/samples/s1") == [f"{sample_address(run.id, 's1')}?show=score"]
    assert reply.links("/samples/s4") == [f"{sample_address(run.id, 's4')}?show=score"]
    data = client.get(f"{sample_address(run.id, 's3')}.json").json
    assert (data["sample"]["output"], [record["value"] for record in data["records"]]) == ("0.25", [0.25, 0.25])
    failed = client.get(sample_address(run.id, "s5")).words
    assert "failed" in failed
    assert "given 0" not in failed


def test_trials_lead_to_each_other(url: str) -> None:
    answers = iter(["1", "0.5"])

    def target(input: str) -> str:
        return next(answers)

    run = evaluate([Sample(id="a", input="?")], [Given()], target=target, trials=2, ledger=url)
    reply = client_of(url).get(sample_address(run.id, "a #1"))
    assert sample_address(run.id, "a #2") in reply.links("/samples/")


@pytest.mark.parametrize(
    "name", ["a/b", "c?d=e#f", "..", ".", "x.json", "~t", "\u202egnirts", "50%", " ", "ü/日本", "x.csv"]
)
def test_any_id_has_a_page_and_data(url: str, name: str) -> None:
    run = evaluate([Sample(id=name, input="i", output="0.5")], [Given()], ledger=url)
    client = client_of(url)
    (address,) = client.get(run_address(run.id)).links("/samples/")
    assert client.get(address).status == 200
    assert client.get(f"{address}.json").json["key"] == name
    assert "\u202e" not in client.get(address).text


def test_a_results_folder_is_shown_like_a_run_of_the_ledger(tmp_path: Path) -> None:
    run = run_of(ANSWERS)
    write_run(run, tmp_path / "results" / "one")
    client = client_of(None, tmp_path / "results")
    assert run_address(run.id) in client.get("/").links("^/runs/")
    assert "s3" in client.get(run_address(run.id)).words
    assert "How much?" in client.get(sample_address(run.id, "s3")).words


def test_a_folder_that_changes_is_indexed_again_and_one_that_is_gone_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    run = run_of(["1"])
    write_run(run, folder)
    client = client_of(None, folder)
    assert client.get(f"{run_address(run.id)}.json").json["matching"] == 1
    lines = (folder / "records.jsonl").read_text().replace('"s1"', '"renamed"')
    (folder / "records.jsonl").write_text(lines)
    data = client.get(f"{run_address(run.id)}.json").json
    assert [sample["key"] for sample in data["samples"]] == ["renamed"]
    (folder / "records.jsonl").write_text("{broken")
    assert client.get(run_address(run.id)).status == 503
    (folder / "summary.json").unlink()
    assert client.get(run_address(run.id)).status == 404
    assert "summary.json" in client.get("/").words
    shutil.rmtree(folder)
    reply = client.get("/")
    assert (reply.status, "gone" in reply.words) == (200, True)


def test_an_unknown_page_run_or_sample_is_not_found(url: str) -> None:
    run = evaluate(samples_of(["1"]), [Given()], ledger=url)
    client = client_of(url)
    for address in (
        "/nothing", "/runs", "/runs/", "/runs.xml", "/runs/none", "/runs/last", "/runs/none.json",
        "/runs/a%2Fb/samples/x", sample_address(run.id, "no such sample"), f"{sample_address(run.id, 's1')}.csv",
    ):  # fmt: skip
        reply = client.get(address)
        assert (reply.status, reply.headers["content-type"]) == (404, "text/html; charset=utf-8"), address
        assert "Traceback" not in reply.text


@pytest.mark.parametrize(
    "query",
    [
        "min=x",
        "show=?",
        "sort=beauty",
        "scorer=none",
        "field=none%3D1",
        "field=x",
        "after=x",
        "sort=score:none",
        "column=z",
    ],
)
def test_an_address_that_makes_no_sense_is_an_error_in_words(url: str, query: str) -> None:
    run = evaluate(samples_of(["1"]), [Given()], ledger=url)
    client = client_of(url)
    for suffix in ("", ".json", ".csv"):
        assert client.get(f"{run_address(run.id)}{suffix}?{query}").status == 400, suffix
    assert client.get("/runs/%FF").status == 400


def test_nothing_is_written_to_the_ledger(url: str) -> None:
    run = evaluate(samples_of(ANSWERS), [Given()], ledger=url)
    before = hashlib.sha256(Path(url).read_bytes()).hexdigest()
    files = {path.name for path in Path(url).parent.iterdir()}
    client = client_of(url)
    for address in ("/", "/runs.json", run_address(run.id), sample_address(run.id, "s1")):
        assert client.get(address).status == 200
    assert hashlib.sha256(Path(url).read_bytes()).hexdigest() == before
    assert {path.name for path in Path(url).parent.iterdir()} == {*files, "view"}
    with pytest.raises(sqlite3.OperationalError), Ledger(url, read_only=True) as ledger:
        ledger.database.execute("DELETE FROM runs")


def test_the_index_of_a_run_goes_with_the_run(url: str) -> None:
    first, second = (evaluate(samples_of([answer]), [Given()], ledger=url) for answer in ("1", "0.5"))
    client = client_of(url)
    for run in (first, second):
        assert client.get(run_address(run.id)).status == 200
    unfinished(url, first.id, running=False)
    with Ledger(url) as ledger:
        for delete, left in ((False, 2), (True, 1)):
            prune(ledger, unfinished=True, delete=delete)
            assert len(list((Path(url).parent / "view").iterdir())) == left
    assert client.get(run_address(first.id)).status == 404
    assert client.get(run_address(second.id)).status == 200


def test_a_ledger_whose_folder_cant_be_written_is_read_and_indexed_elsewhere(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = evaluate(samples_of(ANSWERS), [Given()], ledger=url)

    def refuse(*_: object) -> bool:
        return False

    monkeypatch.setattr(indexes.os, "access", refuse)
    client = client_of(url)
    assert client.get(run_address(run.id)).status == 200
    assert [path.name for path in Path(url).parent.iterdir()] == ["ledger.db"]


def test_a_ledger_that_is_gone_or_of_another_version_says_so(url: str) -> None:
    evaluate(samples_of(["1"]), [Given()], ledger=url)
    client = client_of(url)
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("UPDATE ledger_version SET version_num = '99'")
    assert client.get("/").status == 503
    Path(url).unlink()
    reply = client.get("/")
    assert (reply.status, "Traceback" in reply.text) == (503, False)
    assert not Path(url).exists()


@pytest.mark.parametrize(("running", "state"), [(True, "running"), (False, "interrupted")])
def test_a_run_that_is_written_or_was_killed_shows_how_far_it_is(url: str, running: bool, state: str) -> None:
    run = evaluate(samples_of(ANSWERS), [Given()], ledger=url, name="alive")
    unfinished(url, run.id, running=running)
    client = client_of(url)
    listing = client.get("/")
    assert state in listing.words
    assert "2 of 5 results (40%)" in listing.words
    assert ("refresh" in listing.headers) is running
    page = client.get(run_address(run.id))
    assert (page.status, state in page.words) == (200, True)
    assert client.get(f"{run_address(run.id)}.json").json["matching"] == 2


def test_an_index_that_takes_long_says_how_far_it_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluate(samples_of(ANSWERS), [Given()], ledger=url)
    monkeypatch.setattr(jobs, "PATIENCE", 0.0)
    client = client_of(url)
    first = client.get(run_address(run.id))
    assert first.status in (200, 202)
    if first.status == 202:
        assert first.headers["refresh"] == "1"
    deadline = time.monotonic() + 30
    while client.get(run_address(run.id)).status == 202 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert client.get(run_address(run.id)).status == 200
    unfinished(url, run.id, running=False)
    while (reply := client.get(f"{run_address(run.id)}.json")).status == 202 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert reply.json["matching"] == 2


def test_a_run_in_progress_is_shown_as_it_was_a_moment_ago(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluate(samples_of(ANSWERS), [Given()], ledger=url)
    unfinished(url, run.id, running=True)
    client = client_of(url)

    def matching() -> int:
        return client.get(f"{run_address(run.id)}.json").json["matching"]

    assert matching() == 2
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("DELETE FROM records WHERE run = :run AND cell > 0", {"run": run.id})
    monkeypatch.setattr(indexes, "PAUSE", 1e9)
    assert matching() == 2
    monkeypatch.setattr(indexes, "PAUSE", 0.0)
    assert matching() == 1


def test_an_index_that_cant_be_made_is_an_error_for_who_asks_next(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluate(samples_of(ANSWERS), [Given()], ledger=url)
    begun: list[object] = []

    def full(*_: object) -> None:
        begun.append(None)
        raise StorageError("the disk is full")

    monkeypatch.setattr(jobs, "PATIENCE", 0.0)
    monkeypatch.setattr(indexes, "build", full)
    client = client_of(url)
    statuses: list[int] = []
    while 503 not in statuses and len(statuses) < 600:
        statuses.append(client.get(run_address(run.id)).status)
        time.sleep(0.05)
    assert (statuses[-1], len(begun)) == (503, 1)
    monkeypatch.undo()
    assert client.get(run_address(run.id)).status == 200


def test_only_what_a_process_left_behind_is_removed_from_the_folder_of_indexes(url: str) -> None:
    evaluate(samples_of(ANSWERS), [Given()], ledger=url)
    folder = Path(url).parent / INDEXES
    folder.mkdir(exist_ok=True)
    being_made, left = folder / "a.db.1.draft", folder / "b.db.2.draft"
    for draft in (being_made, left):
        draft.write_bytes(b"")
    os.utime(left, (0, time.time() - 2 * indexes.ABANDONED))
    client_of(url)
    assert (being_made.exists(), left.exists()) == (True, False)


def test_a_damaged_run_does_not_hide_the_others(url: str) -> None:
    bad, good = (evaluate(samples_of(["1"]), [Given()], ledger=url) for _ in range(2))
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("UPDATE runs SET metadata = '{' WHERE id = :run", {"run": bad.id})
    client = client_of(url)
    listing = client.get("/")
    assert listing.status == 200
    assert {run_address(bad.id), run_address(good.id)} <= set(listing.links("^/runs/"))
    assert client.get(run_address(bad.id)).status == 503
    assert client.get(run_address(good.id)).status == 200


def test_secrets_that_are_known_are_hidden(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluate([Sample(id="a", input="key", output="0.5")], [Given()], ledger=url)
    register_settings({"api_key": "sk-super-secret-value-123456"})
    client = client_of(url)
    reply = client.get(f"{run_address(run.id)}?q=sk-super-secret-value-123456")
    assert "super-secret" not in reply.text


def test_stored_json_is_what_a_program_reads(url: str) -> None:
    evaluate(samples_of(["1"]), [Given()], ledger=url, name="x")
    data: Any = client_of(url).get("/runs.json").json
    assert json.loads(json.dumps(data)) == data
    assert data[0]["dataset"]["samples"] == 1


def offered(page: str, name: str) -> list[str]:
    """What the options of a form's list send, as a browser sends it."""
    lists = re.findall(rf'<select name="{name}">(.*?)</select>', page, re.DOTALL)
    values = [html.unescape(value) for each in lists for value in re.findall(r'<option value="([^"]*)"', each)]
    return [re.sub("\r?\n", "\r\n", value) for value in values if value]


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines",
        "hidden\u200b and \u202eturned",
        "nul\0",
        "  a  b ",
        "x=y",
        "100% of 5%25",
        "\u0645\u06cc\u200c\u062e\u0648",
    ],
)
def test_whatever_a_form_offers_is_found(url: str, text: str) -> None:
    class Odd(Given):
        name = "odd"

        def score(self, *, output: str) -> Score | Skipped:
            return Skipped(f"{text} {'and so on ' * 500}") if output == "0" else Score(1.0)

    metadata = [{text: f"{text} {n}"} for n in (1, 2)]
    run = evaluate(samples_of(["0", "1"], metadata=metadata), [Odd(), Given()], ledger=url)
    client = client_of(url)
    page = client.get(run_address(run.id)).text
    for name in ("reason", "field", "scorer", "sort"):
        assert offered(page, name)
        for value in offered(page, name):
            reply = client.get(f"{run_address(run.id)}?{urlencode({name: value})}")
            assert (reply.status, bool(reply.links("/samples/"))) == (200, True)
            if name in ("reason", "field"):
                assert len({link.partition("?")[0] for link in reply.links("/samples/")}) == 1
                option = f'<option value="{html.escape(value).replace("&#x27;", "&#39;")}"'
                assert "selected" in reply.text.partition(option)[2][:10]


def test_the_address_keeps_all_digits_of_a_number(url: str) -> None:
    run = evaluate(samples_of(["0.3333333", "0.3333334"] * 30), [Given()], ledger=url)
    client = client_of(url)
    reply = client.get(f"{run_address(run.id)}?min=0.33333335")
    assert 'name="min" inputmode="decimal" value="0.33333335"' in reply.text
    assert all("min=0.33333335" in link for link in reply.links("min="))


@pytest.mark.parametrize(
    "query", ["&".join(["field=m=1"] * 1500), "after=[%22%5Cud800%22,1]&sort=id", "after=[1e999,1]", "q=%ED%A0%80%00"]
)
def test_an_address_that_makes_no_sense_breaks_nothing(url: str, query: str) -> None:
    run = evaluate(samples_of(["1", "0"], metadata=[{"m": 1}, {"m": 2}]), [Given()], ledger=url)
    client = client_of(url)
    for suffix in ("", ".json", ".csv"):
        assert client.get(f"{run_address(run.id)}{suffix}?{query}").status in (200, 400)
    assert client.get("/runs/%ED%A0%80").status == 404


def test_a_run_without_any_result_yet_has_a_page(url: str) -> None:
    run = evaluate(samples_of(["1"]), [Given()], ledger=url)
    with closing(sqlite3.connect(url, isolation_level=None)) as connection:
        connection.execute("DELETE FROM records")
        connection.execute("UPDATE runs SET finished = NULL")
    client = client_of(url)
    for address in (run_address(run.id), f"{run_address(run.id)}.json", f"{run_address(run.id)}.csv"):
        assert client.get(address).status == 200
    assert re.search(r">\s*</a></th>", client.get("/").text) is None


@pytest.mark.slow
def test_two_viewers_make_the_index_of_a_run_at_once(url: str) -> None:
    run = evaluate(samples_of([str(n / 300) for n in range(300)]), [Given(), Harm()], ledger=url)
    clients = [client_of(url) for _ in range(4)]
    address = f"{run_address(run.id)}.json"

    def asked(client: Client) -> Reply:
        return client.get(address)

    for _ in range(3):
        shutil.rmtree(Path(url).parent / INDEXES)
        (Path(url).parent / INDEXES).mkdir()
        with ThreadPoolExecutor(4) as pool:
            replies = [*pool.map(asked, clients)]
        assert [(reply.status, reply.json["matching"]) for reply in replies] == [(200, 300)] * 4
    assert [file.suffix for file in (Path(url).parent / INDEXES).iterdir()] == [".db"]


def test_a_ledger_that_is_replaced_is_read_anew(url: str, tmp_path: Path) -> None:
    first = evaluate(samples_of(["1"]), [Given()], ledger=url, name="first")
    client = client_of(url)
    assert client.get(run_address(first.id)).status == 200
    other = str(tmp_path / "other.db")
    second = evaluate(samples_of(["1"]), [Given()], ledger=other, name="second")
    Path(other).replace(url)
    assert [run["id"] for run in client.get("/runs.json").json] == [second.id]
    assert client.get(run_address(first.id)).status == 404
    Path(url).write_bytes(b"not a database" * 1000)
    for address in ("/", run_address(second.id), "/runs.json"):
        reply = client.get(address)
        assert (reply.status, "Traceback" in reply.text, "bug" in reply.text) == (503, False, False)
