"""The pages of datasets: versions, differences of two, and files."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from evalstone import Message, Run, Sample, evaluate
from evalstone.datasets.loading import Dataset, load
from evalstone.ledger.base import INDEXES
from evalstone.ledger.maintenance import prune
from evalstone.ledger.store import Ledger
from evalstone.view.indexing import dataset_differences
from evalstone.view.indexing.dataset_differences import PAGE, DatasetDifference
from tests.runs import Given
from tests.view.conftest import client_of

NAME = "answers/all.jsonl"
ADDRESS = "/datasets/answers%2Fall.jsonl"
SAMPLES = [
    Sample(
        id=f"q{n}",
        input=f"How high is mountain {n} in the whole range?",
        output="0.5",
        reference=f"It is {n} meters high.",
        metadata={"topic": "hills", "n": n},
        messages=(Message(role="user", content="hi"),) if n % 2 else (),
    )
    for n in range(600)
]


def edited() -> list[Sample]:
    """The samples with one changed in two fields, one in a text, one removed, one added, and one moved."""
    samples = list(SAMPLES)
    samples[3] = replace(samples[3], reference="It is 30 meters high.", metadata={"topic": "lakes", "n": 3})
    samples[500] = replace(samples[500], input="How high is mountain 500?\n<script>alert(1)</script>")
    added = Sample(id="new/one?", input="What is new?", output="1")
    return [*samples[:10], added, *samples[11:20], *samples[21:], samples[20]]


def run(url: str, samples: list[Sample], name: str) -> Run:
    return evaluate(Dataset(samples=samples, name=NAME), [Given()], ledger=url, name=name)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run, Run]:
    url = str(tmp_path_factory.mktemp("datasets") / "ledger.db")
    return url, run(url, SAMPLES, "first"), run(url, edited(), "second <b>")


def test_datasets_are_listed_with_their_versions_and_runs(ledger: tuple[str, Run, Run]) -> None:
    url, first, second = ledger
    client = client_of(url)
    page = client.get("/datasets")
    assert page.status == 200
    assert page.links("^/datasets/.*jsonl$") == [ADDRESS]
    assert ADDRESS in client.get("/").links("^/datasets/")
    about = client.get("/datasets.json").json
    assert [(row["dataset"], row["samples"], row["versions"], row["runs"]) for row in about] == [(NAME, 600, 2, 2)]
    assert next(csv.DictReader(io.StringIO(client.get("/datasets.csv").text)))["version"] == second.dataset_version
    assert client.get("/datasets?q=ANSWERS").links(ADDRESS)
    assert "No dataset matches" in client.get("/datasets?q=other").words
    page = client.get(ADDRESS)
    versions = [second.dataset_version, first.dataset_version]
    assert [row["version"] for row in client.get(f"{ADDRESS}.json").json["versions"]] == versions
    assert page.links("^/runs/") == [f"/runs/{run.id}" for run in (second, first)]
    assert "second &lt;b&gt;" in page.text
    assert page.links("changes") == [f"{ADDRESS}?from={versions[1]}&to={versions[0]}#changes"]
    assert client.get("/datasets/none").status == client.get("/datasets.xml").status == 404


def test_a_difference_shows_what_was_added_removed_and_changed(ledger: tuple[str, Run, Run]) -> None:
    url, first, second = ledger
    client = client_of(url)
    address = f"{ADDRESS}?from={first.dataset_version}&to={second.dataset_version}"
    page = client.get(address)
    assert "597 samples are the same" in page.words
    assert "<del>" in page.text
    assert "<script>alert" not in page.text
    data = client.get(address.replace("?", ".json?")).json["difference"]
    assert {name: data[name] for name in ("same", "changed", "added", "removed", "fields")} == {
        "same": 597,
        "changed": 2,
        "added": 1,
        "removed": 1,
        "fields": {"input": 1, "reference": 1, "metadata": 1},
    }
    found = {row["sample_id"]: row for row in data["samples"]}
    assert [(name, row["change"]) for name, row in found.items()] == [
        ("q3", "changed"), ("new/one?", "added"), ("q500", "changed"), ("q10", "removed"),
    ]  # fmt: skip
    assert found["q3"]["fields"] == ["reference", "metadata"]
    assert found["q3"]["from"]["reference"] == "It is 3 meters high."
    assert found["q3"]["to"]["metadata"] == {"topic": "lakes", "n": 3}
    assert found["new/one?"]["from"] is None
    rows = list(csv.DictReader(io.StringIO(client.get(address.replace("?", ".csv?") + "&show=changed").text)))
    assert [row["sample_id"] for row in rows] == ["q3", "q500"]
    assert json.loads(rows[0]["to"])["reference"] == "It is 30 meters high."
    assert "metadata.topic" in client.get(f"{address}&changed=reference").text
    assert "metadata.n" not in client.get(f"{address}&changed=reference").text


def test_a_download_is_the_same_version(ledger: tuple[str, Run, Run], tmp_path: Path) -> None:
    url, _, second = ledger
    client = client_of(url)
    reply = client.get(f"{ADDRESS}/{second.dataset_version}.jsonl")
    assert reply.headers["content-disposition"] == 'attachment; filename="answers_all.jsonl"'
    file = tmp_path / "answers.jsonl"
    file.write_bytes(reply.body)
    assert load(file).version == second.dataset_version
    assert client.get(f"{ADDRESS}/0123456789abcdef.jsonl").status == 404


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("from=x", 400, "needs both versions"),
        ("from={a}&to={a}", 400, "another version than from"),
        ("from={a}&to=nothing", 404, "has no version nothing"),
        ("from={a}&to={b}&show=some", 400, "unknown value of show"),
        ("from={a}&to={b}&changed=inptu", 400, "did you mean input?"),
        ("from={a}&to={b}&after=x", 400, "after must be the number of a row"),
    ],
)
def test_an_address_that_makes_no_sense_is_an_error_in_words(
    ledger: tuple[str, Run, Run], query: str, status: int, words: str
) -> None:
    url, first, second = ledger
    reply = client_of(url).get(f"{ADDRESS}?{query.format(a=first.dataset_version, b=second.dataset_version)}")
    assert (reply.status, words in reply.words) == (status, True), reply.words


def test_a_difference_is_paged_by_key_in_both_directions(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    old = run(url, SAMPLES, "a")
    new = run(url, [replace(sample, reference="other") for sample in SAMPLES], "b")
    client = client_of(url)
    address = f"{ADDRESS}.json?from={old.dataset_version}&to={new.dataset_version}"
    seen: list[str] = []
    while address:
        data = client.get(address).json["difference"]
        seen += [row["sample_id"] for row in data["samples"]]
        address = data["next"]
    assert seen == [f"q{n}" for n in range(600)]
    with DatasetDifference(next((tmp_path / INDEXES).glob("dataset-*.db"))) as difference:
        second = difference.page(None, "", after=str(PAGE))
        first = difference.page("changed", "reference", before=second.previous)
        assert (first.samples[0].id, first.previous, first.following) == ("q0", "", str(PAGE))


def test_a_damaged_difference_is_made_again_and_prune_deletes_those_of_its_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "ledger.db")
    old, new = run(url, SAMPLES, "a"), run(url, SAMPLES[1:], "b")
    address = f"{ADDRESS}?from={old.dataset_version}&to={new.dataset_version}"
    assert "599 samples are the same" in client_of(url).get(address).words
    (file,) = (tmp_path / INDEXES).glob("dataset-*.db")
    file.write_bytes(b"damaged" * 1000)
    assert "599 samples are the same" in client_of(url).get(address).words
    monkeypatch.setattr(dataset_differences, "build", None)  # it is there
    assert "599 samples are the same" in client_of(url).get(address).words
    with Ledger(url) as opened:
        with opened.transaction(writing=True) as database:
            database.execute("UPDATE runs SET started = '2020-01-01T00:00:00+00:00' WHERE id = :id", {"id": old.id})
        prune(opened, older_than=timedelta(days=300), delete=True)
    assert not file.exists()
