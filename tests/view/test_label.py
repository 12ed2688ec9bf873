"""The page to label samples: blind, one after the other, and the same labels as in files and in the terminal."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from evalstone import Sample, Score, Scorer, evaluate, load_labels, read_run, write_run
from evalstone.ledger.labels import Label, labels, write_label
from evalstone.ledger.store import Ledger
from evalstone.results.human_labels import corrected
from evalstone.view.app import application
from evalstone.view.shelf import Shelf
from tests.runs import Given, Harm, run_of, samples_of
from tests.view.conftest import Client, client_of

ANSWERS = [f"{number / 10}" for number in range(11)] + ["skip"]
KEY = re.compile(r'<strong class="text" dir="auto">(.*?)</strong>')


@pytest.fixture
def run(url: str) -> str:
    return evaluate(samples_of(ANSWERS), [Given(), Harm()], ledger=url, name="main").id


@pytest.fixture
def client(url: str, run: str, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    return client_of(url)


def stored(url: str, run: str) -> list[Label]:
    with Ledger(url, read_only=True) as ledger:
        return labels(ledger, run)


def say(client: Client, address: str, value: str, **others: str) -> str:
    """Send the form of the page at an address, and return the address that it leads to."""
    shown = client.get(address)
    place = re.search('name="place" value="([^"]*)"', shown.text)
    assert place, shown.words
    reply = client.post("/label", {"place": html.unescape(place[1]), "value": value, **others})
    assert reply.status == 303, reply.words
    return reply.headers["location"]


def test_samples_are_labeled_one_after_the_other_and_undone(url: str, run: str, client: Client) -> None:
    address, seen = f"/label?run={run}", list[str]()
    for value in ("1", "0", "skip", "other"):
        found = KEY.search(client.get(address).text)
        assert found
        seen.append(found[1])
        address = say(client, address, value, other="0,25", note="a\r\nnote" if value == "0" else "")
    assert address == f"/label?run={run}&scorer=given"
    kept = stored(url, run)
    assert [label.key for label in kept] == seen
    assert all(label.stratum is not None and 0 < (label.probability or 0) <= 1 for label in kept)
    assert [(label.value, label.note, label.chosen, label.blind, label.annotator) for label in kept] == [
        (1.0, "", "stratified", True, "ada"),
        (0.0, "a\nnote", "stratified", True, "ada"),
        (None, "", "stratified", True, "ada"),
        (0.25, "", "stratified", True, "ada"),
    ]
    assert "3 labeled, 1 skipped of 11" in client.get(address).words
    place = urlencode({"run": run, "scorer": "given"})
    assert client.post("/label/undo", {"place": place}).headers["location"] == address
    assert [label.key for label in stored(url, run)] == seen[:3]
    assert KEY.search(client.get(address).text)[1] == seen[3]  # type: ignore[index]


def test_a_label_is_given_blind(url: str, run: str, client: Client) -> None:
    with Ledger(url) as ledger:
        for key in ("s1", "s2", "s3"):
            write_label(
                ledger,
                Label(
                    run=run, sample=key, signature=read_run(run, ledger=url)["given"].info.signature,
                    annotator="eve", value=0.75, note="eve's note",
                ),
            )  # fmt: skip
    shown = client.get(f"/label?run={run}&sample=s2")
    assert "How much?" in shown.words
    assert "eve" not in shown.text.partition("So far")[0]
    assert "Label of the data" not in shown.text
    assert "chosen by hand" in shown.words.lower()


class Hidden(Scorer):
    """A score that isn't in the answer."""

    name = "hidden"

    def score(self, *, output: str) -> Score:
        return Score(0.3712, reason=f"unseen reason for {output}")


def test_what_the_judge_says_of_a_sample_is_nowhere_on_the_page(url: str) -> None:
    run = evaluate(samples_of(["a", "b"]), [Hidden()], ledger=url).id
    for address in (f"/label?run={run}", f"/label?run={run}&sample=s1", f"/label?run={run}&order=uncertain"):
        page = client_of(url).get(address)
        assert KEY.search(page.text)
        assert "0.37" not in page.text
        assert "unseen" not in page.text


def test_what_was_chosen_by_hand_or_by_somebody_else_is_told_apart(url: str, run: str, client: Client) -> None:
    first = KEY.search(client.get(f"/label?run={run}").text)[1]  # type: ignore[index]
    other = next(key for key in ("s1", "s2") if key != first)
    say(client, f"/label?run={run}&sample={other}", "1")
    say(client, f"/label?run={run}&order=uncertain", "1")
    say(client, f"/label?run={run}&order=random&annotator=bob", "1")
    kept = stored(url, run)
    assert [(label.annotator, label.chosen, label.stratum is None) for label in kept] == [
        ("ada", "hand", True),
        ("ada", "uncertain", False),
        ("bob", "random", True),
    ]
    say(client, f"/label?run={run}&order=uncertain&sample={kept[1].key}", "0")
    changed = next(label for label in stored(url, run) if label.key == kept[1].key and label.annotator == "ada")
    assert (changed.value, changed.chosen, changed.stratum) == (0.0, "uncertain", kept[1].stratum)


def test_the_labels_are_the_file_that_corrections_read(url: str, run: str, client: Client, tmp_path: Path) -> None:
    for annotator in ("ada", "bob"):
        for number in range(6):
            say(client, f"/label?run={run}&annotator={annotator}", "01"[(number + (annotator == "bob")) % 2])
    whole = read_run(run, ledger=url)
    (tmp_path / "labels.csv").write_bytes(client.get(f"/label.csv?run={run}").body)
    (tmp_path / "labels.json").write_bytes(client.get(f"/label.json?run={run}").body)
    found = [load_labels(whole, "given", tmp_path / f"labels.{kind}") for kind in ("csv", "json")]
    assert found[0] == found[1] == dict.fromkeys(found[0], 0.5)
    assert len(found[0]) == 6
    estimate = corrected(whole, "given", found[0]).result.estimate
    assert estimate is not None
    words = client.get(f"/label?run={run}").words
    assert f"Corrected mean {estimate.estimate:.3f} ({estimate.low:.3f} to {estimate.high:.3f}) from 6 labels" in words
    assert "ada and bob: Cohen's kappa -1.00" in html.unescape(words)
    (row, *_) = csv.DictReader(io.StringIO((tmp_path / "labels.csv").read_text()))
    assert set(row) == {"id", "annotator_ada", "annotator_bob", "note", "chosen", "stratum", "stratum_size", "run_size"}


HOSTILE = '"><script>alert(1)</script>\u202e\r\n/?&#x;é'


def test_the_commands_for_the_labels_are_shown_once_there_are_some(url: str, run: str, client: Client) -> None:
    address = f"/label?run={run}&scorer=harm"
    assert "evalstone gate" not in client.get(address).words
    say(client, address, "1")
    shown = html.unescape(client.get(address).text)
    for command in (
        f"evalstone report {run} --labels harm=ledger --ledger {url}",
        f"evalstone gate {run} --max harm=X --labels harm=ledger --ledger {url}",
        f"evalstone calibrate --labels labels-harm.csv --data DATA --scorer harm --judge JUDGE --ledger {url}",
    ):
        assert f"<code>{command}</code>" in shown
    assert (
        'filename="labels-harm.csv"' in client.get(f"/label.csv?run={run}&scorer=harm").headers["content-disposition"]
    )


def test_hostile_ids_and_notes_are_labeled_and_stay_text(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    ids = [HOSTILE, "=1+1", " ", "~", "..", "\ud800x", "a\nb", "a.json", "\x00"]
    samples = [Sample(id=name, input=HOSTILE, output="0.5", metadata={"label": "secret"}) for name in ids]
    run = evaluate(samples, [Given()], ledger=url).id
    client = client_of(url)
    for _ in ids:
        shown = client.get(address := f"/label?run={run}")
        assert "<script>alert" not in shown.text
        assert "secret" not in shown.text
        say(client, address, "1", note=HOSTILE)
    kept = stored(url, run)
    assert len(kept) == len(ids)
    assert {label.note for label in kept} == {HOSTILE.replace("\r\n", "\n")}
    shown = client.get(f"/label?run={run}")
    assert "Every sample that has a score is labeled" in shown.words
    assert "<script>alert" not in shown.text
    reply = client.get(f"/label.csv?run={run}")
    assert (reply.status, "JSON" in reply.words) == (400, True)
    assert len(client.get(f"/label.json?run={run}").json) == len(ids)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"value": "2"}, 400),
        ({"value": "-1"}, 400),
        ({"value": "nan"}, 400),
        ({"value": "other"}, 400),
        ({}, 400),
        ({"value": "1", "note": "x" * 5001}, 400),
        ({"value": "1", "place": ""}, 400),
        ({"value": "1", "place": "run=nothing"}, 404),
        ({"value": "1", "scorer": "nothing"}, 400),
        ({"value": "1", "sample": "nothing"}, 400),
        ({"value": "1", "order": "best"}, 400),
        ({"value": "1", "seed": "-1"}, 400),
        ({"value": "1", "annotator": "\x1b"}, 400),
    ],
)
def test_a_label_that_makes_no_sense_is_not_written(
    url: str, run: str, client: Client, fields: dict[str, str], status: int
) -> None:
    place = {"run": run, "sample": "s1", **{name: fields[name] for name in fields if name not in ("value", "note")}}
    reply = client.post("/label", {"place": urlencode(place), **fields})
    assert reply.status == status
    assert ("Not found" if status == 404 else "Error") in reply.words
    assert stored(url, run) == []


def test_without_a_ledger_to_write_to_there_is_no_form(url: str, run: str, tmp_path: Path) -> None:
    write_run(other := run_of(["1", "0"]), tmp_path / "results")
    shelves = {run: Shelf(url, read_only=True), other.id: Shelf(None, [str(tmp_path / "results")])}
    for name, shelf in shelves.items():
        client = Client(application(shelf))
        shown = client.get(f"/label?run={name}")
        assert (shown.status, '<form method="post"' in shown.text, "How much?" in shown.words) == (200, False, True)
        assert shelf.refusal in shown.words
        assert client.post("/label", {"place": urlencode({"run": name, "sample": "s1"}), "value": "1"}).status == 403


def test_a_run_of_a_folder_is_labeled_in_the_ledger(url: str, run: str, tmp_path: Path) -> None:
    write_run(other := run_of(["1", "0", "0.5"]), tmp_path / "results")
    client = client_of(url, tmp_path / "results")
    say(client, f"/label?run={other.id}", "1")
    assert [label.run for label in stored(url, other.id)] == [other.id]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/label", 400),
        ("/labels", 404),
        ("/label?run=nothing", 404),
        ("/label?run={run}&scorer=nothing", 400),
        ("/label?run={run}&order=best", 400),
        ("/label?run={run}&sample=nothing", 404),
        ("/label?run=%ff", 400),
    ],
)
def test_an_address_that_makes_no_sense_is_an_error_in_words(
    run: str, client: Client, address: str, status: int
) -> None:
    reply = client.get(address.format(run=run))
    assert reply.status == status
    assert ("Not found" if status == 404 else "Error") in reply.words


def test_a_scorer_says_what_it_asks(url: str) -> None:
    def politeness(output: str) -> Score:
        """Is the answer polite to somebody in a hurry?"""
        return Score(len(output) / 10)

    run = evaluate(samples_of(["1"]), [politeness], ledger=url)
    assert "Is the answer polite to somebody in a hurry?" in client_of(url).get(f"/label?run={run.id}").words
    assert json.loads(json.dumps(run.metadata()))["scorers"][0]["description"].startswith("Is the answer polite")
