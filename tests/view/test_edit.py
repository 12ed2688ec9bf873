"""Datasets that are edited in the pages: only what was edited changes, and nothing else is overwritten."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone import Message, Sample, ToolCall, evaluate, load, write_run
from evalstone._core.redaction import register
from evalstone.datasets.identity import version_of
from evalstone.datasets.loading import Dataset
from evalstone.datasets.stored import sample_line, sample_of, sample_row, write_samples
from evalstone.errors import ConfigError
from evalstone.ledger.datasets import write_version
from evalstone.ledger.store import Ledger
from evalstone.view.app import application
from evalstone.view.drafts import EDITS, LOCK, DatasetFolder
from evalstone.view.indexing import jobs
from evalstone.view.sample_form import LONGEST_FIELD, edited, fields_of
from evalstone.view.shelf import Shelf
from tests.datasets.test_stored import SAMPLES as ANY_SAMPLE
from tests.report.hostile import HOSTILE
from tests.runs import Given, run_of
from tests.schemas import problems
from tests.view.conftest import Client, Reply

NAME = "answers.jsonl"
EDIT = f"/datasets/{NAME}/edit"
ODD = "a/b?\u202e#\ud800 %2F"
SAMPLES = [
    Sample(
        id=f"q{n}",
        input=f"How high is mountain {n}?",
        output="0.5",
        reference=f"It is {n} meters high.",
        context=[f"Mountain {n}.", " "],
        metadata={"n": n, "none": None, "f": 1.0},
        messages=[Message(role="assistant", tool_calls=[ToolCall(name="look", arguments={"n": n}, result=[None])])],
        state="CA",
        group="g",
        weight=2.5,
    )
    for n in range(30)
]
HOSTILE_SAMPLE = Sample(id=ODD, input="\n".join(HOSTILE), output="0.5", reference="a\r\nb", context=[*HOSTILE])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "datasets"
    made.mkdir()
    return made


@pytest.fixture
def client(url: str, folder: Path) -> Client:
    evaluate(Dataset([*SAMPLES, HOSTILE_SAMPLE], NAME), [Given()], ledger=url, name="first")
    return pages(url, folder)


def pages(url: str, folder: Path | str, *, read_only: bool = False) -> Client:
    return Client(application(Shelf(url, datasets=str(folder), read_only=read_only)))


def form_in(page: str, action: str) -> dict[str, str]:
    """The fields of a form as a browser has them."""
    text = re.search(rf'<form method="post" action="{action}".*?</form>', page, re.DOTALL)
    assert text, action
    pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', text[0])
    areas = re.findall(r'<textarea name="([^"]*)"[^>]*>\n(.*?)</textarea>', text[0], re.DOTALL)
    ticked = re.findall(r'<input type="checkbox" name="([^"]*)" value="([^"]*)" checked', text[0])
    return {name: html.unescape(value) for name, value in (*pairs, *areas, *ticked) if name != "token"}


def said(reply: Reply) -> str:
    """The words of a page."""
    return html.unescape(reply.words)


def send(client: Client, page: str, action: str, **fields: str) -> int:
    sent = {**form_in(client.get(page).text, action), **fields}
    return client.post(action, {name: value.replace("\n", "\r\n") for name, value in sent.items()}).status


def change(client: Client, id: str, **fields: str) -> int:
    return send(client, f"{EDIT}/samples/{id}", "/drafts/write", **fields)


def save(client: Client) -> int:
    return send(client, EDIT, "/drafts/save")


def test_only_what_was_edited_changes_in_the_new_version(client: Client, url: str, folder: Path) -> None:
    before = [*SAMPLES, HOSTILE_SAMPLE]
    assert change(client, "q3", reference="It is 30 meters high.", metadata='{"n": 3.5}') == 303
    assert change(client, "q4", **{"passage 1": "", "passage 3": "New."}, weight="") == 303
    assert send(client, f"{EDIT}/samples/q5", "/drafts/remove") == 303
    assert send(client, f"{EDIT}/new", "/drafts/write", id="new", input="What is new?") == 303
    words = said(client.get(EDIT))
    assert "31 samples with 2 changed, 1 added, 1 removed" in words
    assert [*folder.iterdir()] != []
    assert not (folder / NAME).exists()
    reply = client.post("/drafts/save", form_in(client.get(EDIT).text, "/drafts/save"))
    after = [
        *before[:3],
        replace(before[3], reference="It is 30 meters high.", metadata={"n": 3.5}),
        replace(before[4], context=(" ", "New."), weight=None),
        *before[6:],
        Sample(id="new", input="What is new?"),
    ]
    saved = load(folder / NAME)
    assert [*saved] == after
    assert [sample.metadata for sample in saved][:3] == [sample.metadata for sample in before][:3]
    lines = (folder / NAME).read_text().splitlines()
    assert len({*lines} & {*map(sample_line, before)}) == 28
    assert reply.headers["location"] == (f"/datasets/{NAME}?from={version_of(before)}&to={saved.version}#changes")
    page = client.get(reply.headers["location"])
    assert "28 samples are the same" in said(page)
    assert f"{folder}/{NAME}" in said(page)
    assert f"evalstone run {folder}/{NAME} --scorer" in said(page)
    assert not [*folder.glob(f"*{EDITS}")]
    again = evaluate(folder / NAME, [Given()], ledger=url)
    assert again.dataset_version == saved.version
    assert client.get(f"/datasets/{NAME}.json").json["versions"][0]["runs"][0]["id"] == again.id


def browser(sample: Sample) -> dict[str, str]:
    """What a browser sends of a form in which nothing was edited."""
    sent: dict[str, str] = {}
    for each in fields_of(sample_row(sample)):
        page = f"<textarea>\n{each.html}</textarea>".encode("utf-8", "replace").decode()
        text = html.unescape(page.removeprefix("<textarea>\n").removesuffix("</textarea>"))
        text = text.replace("\x00", "\ufffd").replace("\r\n", "\n").replace("\r", "\n")
        sent[each.name] = text.replace("\n", "\r\n")
        if each.is_empty:
            sent[each.empty] = "1"
    return sent


@given(sample=ANY_SAMPLE, reference=st.text(st.characters(exclude_characters="\r\\", exclude_categories=["Cs", "Cc"])))
@settings(max_examples=60, deadline=None)
def test_a_sample_that_is_shown_and_not_edited_stays_the_same(sample: Sample, reference: str) -> None:
    row = sample_row(sample)
    same = edited(row, browser(sample))
    assert json.dumps(same) == json.dumps(row)
    assert version_of([sample_of(same)]) == version_of([sample])
    other = edited(row, {**browser(sample), "reference": reference, "empty reference": "1"})
    assert {**other, "reference": None} == {**row, "reference": None}


def test_an_empty_text_is_kept_apart_from_none() -> None:
    row = sample_row(Sample(id="x", input="", output="given", context=["", "one"]))
    sent = browser(sample_of(row))
    assert edited(row, sent) == row
    without = {name: text for name, text in sent.items() if not name.startswith("empty ")}
    assert edited(row, without) == {"id": "x", "output": "given", "context": ["one"]}
    emptied = edited(row, {**sent, "output": "", "empty reference": "1", "empty passage 3": "1"})
    assert emptied == {"id": "x", "input": "", "reference": "", "context": ["", "one", ""]}


def test_an_empty_text_is_a_choice_of_the_form(client: Client) -> None:
    assert change(client, "q1", reference="", **{"empty reference": "1"}) == 303
    assert 'name="empty reference" value="1" checked' in client.get(f"{EDIT}/samples/q1").text
    assert change(client, "q1", reference="known") == 303
    assert 'name="empty reference" value="1" checked' not in client.get(f"{EDIT}/samples/q1").text


@pytest.mark.slow
def test_ten_thousand_hostile_texts_pass_through_a_form_unchanged() -> None:
    texts = [f"{one}{gap}{two}" for one in HOSTILE for two in HOSTILE for gap in ("", "\n", "\r", "\\", "\u200d\ufe0f")]
    texts += [f"{text}{number}" for number in range(12) for text in texts]
    assert len(texts) > 10_000
    for start in range(0, len(texts), 20):
        row = sample_row(Sample(id="x", input=texts[start], context=texts[start : start + 20]))
        assert edited(row, browser(sample_of(row))) == row


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"metadata": "{"}, "metadata must be JSON"),
        ({"metadata": "[]"}, "metadata must be a mapping"),
        ({"metadata": '{"a": 1, "a": 2}'}, "duplicate key"),
        ({"weight": "-1"}, "weight must be a finite number above 0"),
        ({"messages": '[{"role": "boss"}]'}, "message 1: role must be one of system, user"),
        ({"messages": '[{"role": "user", "contnet": "x"}]'}, "messages: item 1 has no entry 'contnet'"),
        ({"messages": "3"}, "messages must be a list"),
        ({"turns": "3"}, "turns must be a list"),
        ({"turns": "[3]"}, "can't be saved"),
        ({"trajectory": "3"}, "can't be saved"),
    ],
)
def test_what_is_no_sample_is_refused_in_words(client: Client, fields: dict[str, str], words: str) -> None:
    sent = {**form_in(client.get(f"{EDIT}/samples/q1").text, "/drafts/write"), **fields}
    reply = client.post("/drafts/write", sent)
    assert (reply.status, words in said(reply)) == (400, True), said(reply)
    assert "none yet" in said(client.get(EDIT))


def test_escapes_are_edited_as_escapes(client: Client, folder: Path) -> None:
    address = f"{EDIT}/samples/a%2Fb%3F%E2%80%AE%23%ED%A0%80%20%252F"
    shown = form_in(client.get(address).text, "/drafts/write")["input"]
    assert "\\u202eevil\\u202c" in shown
    sent = {**form_in(client.get(address).text, "/drafts/write"), "input": shown + "\\\\ and \\ud800"}
    assert client.post("/drafts/write", sent).status == 303
    assert save(client) == 303
    assert load(folder / NAME).samples[-1] == replace(HOSTILE_SAMPLE, input=f"{HOSTILE_SAMPLE.input}\\ and \ud800")
    sent = {**form_in(client.get(address).text, "/drafts/write"), "input": "\\x"}
    assert "a backslash begins" in said(client.post("/drafts/write", sent))


def test_an_edit_that_was_made_elsewhere_is_not_overwritten(client: Client, folder: Path, url: str) -> None:
    first = form_in(client.get(f"{EDIT}/samples/q1").text, "/drafts/write")
    assert pages(url, folder).get(EDIT).status == 200
    assert change(client, "q1", reference="one") == 303
    reply = client.post("/drafts/write", {**first, "reference": "two"})
    assert (reply.status, "was changed elsewhere" in said(reply)) == (409, True)
    assert client.post("/drafts/remove", first).status == 409
    seen = form_in(client.get(EDIT).text, "/drafts/save")
    assert change(client, "q2", reference="three") == 303
    assert [client.post(f"/drafts/{each}", seen).status for each in ("save", "discard")] == [409, 409]
    assert save(client) == 303
    assert [load(folder / NAME).samples[n].reference for n in (1, 2)] == ["one", "three"]


def test_a_file_that_changed_meanwhile_is_not_overwritten_and_can_be_taken_up(client: Client, folder: Path) -> None:
    assert change(client, "q1", reference="one") == 303
    assert save(client) == 303
    assert change(client, "q2", reference="two") == 303
    other = [Sample(id="q1", input="by hand")]
    write_samples(folder / NAME, other)
    page = client.get(EDIT)
    reply = client.post("/drafts/save", form_in(page.text, "/drafts/save"))
    assert (reply.status, "isn't overwritten" in said(reply)) == (409, True)
    assert [*load(folder / NAME)] == other
    assert send(client, EDIT, "/drafts/discard") == 303
    assert "aren't in the ledger yet" in said(client.get(EDIT))
    assert "no run has used them" in said(client.get(f"/datasets/{NAME}"))
    assert change_refused(client)
    assert send(client, EDIT, "/drafts/read") == 303
    assert change(client, "q1", output="1") == 303
    assert save(client) == 303
    assert [*load(folder / NAME)] == [Sample(id="q1", input="by hand", output="1")]


def change_refused(client: Client) -> bool:
    return client.post("/drafts/write", {"place": f"name={NAME}&id=q1", "seen": ""}).status == 400


@pytest.mark.parametrize("how", ["text", "mixed", "link", "folder"])
def test_a_file_that_is_none_of_ours_is_never_overwritten(
    client: Client, folder: Path, tmp_path: Path, how: str
) -> None:
    own, theirs = folder / NAME, tmp_path / "theirs.jsonl"
    write_samples(theirs, SAMPLES)
    match how:
        case "text":
            own.write_text('{"id": "mine", "input": "q"}\n')
        case "mixed":
            own.write_text(theirs.read_text() + '{"id": "mine", "input": "q"}\n')
        case "link":
            own.symlink_to(theirs)
        case _:
            own.mkdir()
    before = theirs.read_bytes(), own.read_bytes() if own.is_file() else b""
    assert "saved as" in said(client.get(EDIT))
    assert change(client, "q1", reference="one") == 303
    reply = client.post("/drafts/save", form_in(client.get(EDIT).text, "/drafts/save"))
    assert reply.headers["location"] == "/datasets/answers-2.jsonl"
    assert load(folder / "answers-2.jsonl").samples[1].reference == "one"
    assert (theirs.read_bytes(), own.read_bytes() if own.is_file() else b"") == before


def test_a_file_that_appears_after_the_edits_were_begun_is_not_overwritten(client: Client, folder: Path) -> None:
    assert change(client, "q1", reference="one") == 303
    (folder / NAME).write_text("mine\n")
    assert save(client) == 409
    assert (folder / NAME).read_text() == "mine\n"


def test_a_file_that_changes_while_it_is_saved_is_not_overwritten(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*given: Any) -> None:
        write_version(*given)
        (folder / NAME).write_text("mine\n")

    monkeypatch.setattr("evalstone.view.editing.write_version", meanwhile)
    assert change(client, "q1", reference="one") == 303
    assert save(client) == 409
    assert (folder / NAME).read_text() == "mine\n"
    assert "1 changed" in said(client.get(EDIT))


def test_edits_that_a_kill_left_after_the_file_was_written_are_saved_already(
    client: Client, folder: Path, url: str
) -> None:
    assert change(client, "q1", reference="one") == 303
    edits = (folder / f"{NAME}{EDITS}").read_bytes()
    assert [problem for line in edits.splitlines() for problem in problems(json.loads(line))] == []
    assert save(client) == 303
    before = (folder / NAME).stat().st_ino
    (folder / f"{NAME}{EDITS}").write_bytes(edits)
    assert save(pages(url, folder)) == 303
    assert [*folder.glob(f"*{EDITS}")] == []
    assert (folder / NAME).stat().st_ino == before
    (folder / f"{NAME}{EDITS}").write_bytes(edits)
    assert change(client, "q2", reference="two") == 303
    assert save(client) == 409


def test_a_sample_of_a_run_leads_to_itself_in_its_dataset(client: Client, url: str, folder: Path) -> None:
    write_run(run_of(["1"]), folder.parent / "results")
    run = client.get("/runs.json").json[0]["id"]
    (address,) = client.get(f"/runs/{run}/samples/q3").links("/edit/")
    assert "It is 3 meters high." in said(client.get(address))
    assert not pages(url, folder, read_only=True).get(f"/runs/{run}/samples/q3").links("/edit/")
    others = Client(application(Shelf(url, [str(folder.parent / "results")], datasets=str(folder))))
    other = next(each["id"] for each in others.get("/runs.json").json if each["id"] != run)
    (sample,) = others.get(f"/runs/{other}").links("/samples/")
    assert not others.get(sample).links("/edit/")


@pytest.mark.parametrize("what", ["save", "read"])
def test_what_takes_long_goes_on_while_a_page_says_how_far_it_is(
    client: Client, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    if what == "save":
        assert change(client, "q1", reference="one") == 303
    else:
        write_samples(folder / NAME, SAMPLES[:3])
    form, token = form_in(client.get(EDIT).text, f"/drafts/{what}"), client.token
    goes_on = threading.Event()

    def slowly(*given: Any) -> None:
        goes_on.wait()
        write_version(*given)

    monkeypatch.setattr("evalstone.view.editing.write_version", slowly)
    with monkeypatch.context() as hasty:
        hasty.setattr(jobs, "PATIENCE", 0.01)
        replies = [client.post(f"/drafts/{what}", form, token=token) for _ in range(2)]  # also if it is sent twice
        assert {reply.headers["location"] for reply in replies} == {f"{EDIT}/saving"}
        page = client.get(f"{EDIT}/saving")
        assert (page.status, page.headers["refresh"], "is being saved" in said(page)) == (202, "1", True)
        assert client.get("/").status == 200
    goes_on.set()
    after = client.get(f"{EDIT}/saving")
    assert after.headers["location"].startswith(f"/datasets/{NAME}?from=" if what == "save" else EDIT)
    assert client.get(f"{EDIT}/saving").headers["location"] == EDIT  # nothing is begun again
    assert len(load(folder / NAME)) == (31 if what == "save" else 3)
    assert not [*folder.glob(f"*{EDITS}")]


def test_what_goes_wrong_while_a_dataset_is_saved_is_said_once(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def late(*given: Any) -> None:
        goes_on.wait()
        (folder / NAME).write_text("mine\n")

    monkeypatch.setattr("evalstone.view.editing.write_version", late)
    assert change(client, "q1", reference="one") == 303
    with monkeypatch.context() as hasty:
        hasty.setattr(jobs, "PATIENCE", 0.01)
        assert save(client) == 303
    goes_on.set()
    page = client.get(f"{EDIT}/saving")
    assert (page.status, "was changed elsewhere" in said(page)) == (409, True)
    assert client.get(f"{EDIT}/saving").headers["location"] == EDIT
    assert "1 changed" in said(client.get(EDIT))


@pytest.mark.parametrize("name", [f"{NAME}{EDITS}", LOCK])
def test_no_link_is_followed_out_of_the_folder(client: Client, folder: Path, tmp_path: Path, name: str) -> None:
    seen = form_in(client.get(f"{EDIT}/samples/q1").text, "/drafts/write")
    (tmp_path / "theirs").write_text("mine\n")
    (folder / LOCK).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "theirs")
    reply = client.post("/drafts/write", {**seen, "reference": "one"})
    assert (reply.status, name in said(reply)) == (503, True), said(reply)
    assert (tmp_path / "theirs").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("answers.jsonl", "answers"),
        ("answers.csv", "answers.csv"),
        ("answers.json", "answers.json"),
        ("../../etc/passwd", "etc_passwd-#"),
        ("in memory", "in_memory-#"),
        (".hidden", "hidden-#"),
        ("con.jsonl", "con_-#"),
        ("COM².x", "COM²_.x-#"),
        ("Lpt1.v2.csv", "Lpt1_.v2.csv-#"),
        ("\U00020000" * 90, "\U00020000" * 47 + "-#"),
        ("\u202e\x00/", "dataset-#"),
        ("Höhe/über.parquet", "Höhe_über.parquet-#"),
        ("x" * 500, f"{'x' * 100}-#"),
        ("-rf", "rf-#"),
    ],
)
def test_the_name_of_a_file_is_plain_and_that_of_one_dataset(folder: Path, name: str, file: str) -> None:
    found = DatasetFolder(str(folder)).file_for(name)
    assert re.fullmatch(f"{re.escape(file)}\\.jsonl".replace("\\#", "[0-9a-f]{6}"), found)


def test_datasets_whose_names_differ_in_case_are_different_files_everywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = DatasetFolder(str(folder))
    (folder / "data.jsonl").write_text(f"{sample_line(Sample(id='a', output='x'))}\n")
    (folder / "Data.jsonl").hardlink_to(folder / "data.jsonl")  # on Windows and macOS, both names lead to one file
    entries = Path.iterdir

    def listed(path: Path) -> Iterator[Path]:
        return (each for each in entries(path) if each.name != "Data.jsonl")

    monkeypatch.setattr(Path, "iterdir", listed)
    assert datasets.file_for("data") == "data.jsonl"
    assert datasets.file_for("Data") == "Data-2.jsonl"


def test_folders_that_are_not_for_datasets_are_refused(tmp_path: Path) -> None:
    write_run(run_of(["1"]), tmp_path / "results")
    with pytest.raises(ConfigError, match="is a results folder"):
        DatasetFolder(str(tmp_path / "results"))
    with pytest.raises(ConfigError, match="doesn't exist"):
        DatasetFolder(str(tmp_path / "nothing"))


@pytest.mark.parametrize("how", ["--read-only", "--datasets", "can't be written"])
def test_where_no_dataset_can_be_edited_there_is_no_form(
    client: Client, url: str, folder: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = form_in(client.get(f"{EDIT}/samples/q1").text, "/drafts/write")
    run = client.get("/runs.json").json[0]["id"]
    match how:
        case "--read-only":
            other = pages(url, folder, read_only=True)
        case "--datasets":
            other = Client(application(Shelf(url)))
        case _:
            other = pages(url, folder)
            monkeypatch.setattr(DatasetFolder, "refusal", f"The folder {folder} can't be written.")
    for address in (EDIT, f"{EDIT}/new", f"/collect?run={run}&key=q1"):
        reply = other.get(address)
        assert how in said(reply), said(reply)
        assert "/drafts/" not in reply.text
    assert how in said(other.get(f"/datasets/{NAME}"))
    assert "/collect" not in other.get(f"/runs/{run}").text
    reply = other.post("/drafts/write", {**seen, "reference": "x"}, token=other.token)
    assert (reply.status, how in said(reply)) == (403, True)
    assert [*folder.iterdir()] == []


def test_a_form_of_another_site_edits_nothing(client: Client, folder: Path) -> None:
    seen = form_in(client.get(f"{EDIT}/samples/q1").text, "/drafts/write")
    assert client.post("/drafts/write", {**seen, "reference": "x"}, origin="http://evil.example").status == 403
    assert client.post("/drafts/write", {**seen, "reference": "x"}, token="guessed").status == 403
    assert [*folder.iterdir()] == []


def test_ids_stay_unique_and_a_sample_that_is_there_is_said(client: Client) -> None:
    new = f"{EDIT}/new"
    for fields, words in (
        ({"id": "q1", "input": "x"}, "The ID q1 is already used"),
        ({"id": "x"}, "A sample needs a field"),
        ({}, "A sample needs a field"),
    ):
        reply = client.post("/drafts/write", {**form_in(client.get(new).text, "/drafts/write"), **fields})
        assert (reply.status, words in said(reply)) == (400, True), said(reply)
    for fields, status in (({"input": "x"}, 303), ({"input": "x"}, 400), ({"id": "y", "input": "x"}, 400)):
        assert send(client, new, "/drafts/write", **fields) == status
    assert "1 added" in said(client.get(EDIT))


@pytest.mark.slow
def test_a_sample_with_ten_million_characters_keeps_them(url: str, folder: Path) -> None:
    large = Sample(id="large", input="x" * 10_000_000, output="0.5", reference="r")
    evaluate(Dataset([large], NAME), [Given()], ledger=url)
    client = pages(url, folder)
    page = client.get(f"{EDIT}/samples/large")
    assert len(page.body) < 100_000
    assert f"has 10,000,000 characters, and a page edits at most {LONGEST_FIELD:,}" in said(page)
    assert change(client, "large", reference="s") == 303
    assert len(client.get(EDIT).body) < 100_000
    assert save(client) == 303
    assert [*load(folder / NAME)] == [replace(large, reference="s")]


def test_a_text_with_a_secret_is_not_edited_and_stays(url: str, folder: Path) -> None:
    register("s3cr3t-value-of-a-key")
    sample = Sample(id="a", input="The key is s3cr3t-value-of-a-key & more.", output="0.5")
    evaluate(Dataset([sample], NAME), [Given()], ledger=url)
    client = pages(url, folder)
    assert "has a secret" in said(client.get(f"{EDIT}/samples/a"))
    assert change(client, "a", reference="r") == 303
    assert save(client) == 303
    assert load(folder / NAME).samples[0].input == sample.input


def test_undoing_and_discarding_leave_nothing(client: Client, folder: Path) -> None:
    assert change(client, "q1") == 303  # nothing was edited
    assert not [*folder.glob(f"*{EDITS}")]
    assert change(client, "q1", reference="one") == 303
    assert change(client, "q1", reference="It is 1 meters high.") == 303  # as it was
    assert not [*folder.glob(f"*{EDITS}")]
    assert send(client, f"{EDIT}/samples/q2", "/drafts/remove") == 303
    assert "The sample is removed" in said(client.get(f"{EDIT}/samples/q2"))
    assert send(client, EDIT, "/drafts/undo") == 303
    assert change(client, "q3", reference="three") == 303
    assert send(client, EDIT, "/drafts/discard") == 303
    assert not [*folder.glob(f"*{EDITS}")]
    assert client.post("/drafts/save", {"place": f"name={NAME}", "state": ""}).status == 409


def test_samples_are_searched_and_paged(client: Client) -> None:
    page = client.get(f"{EDIT}?q=MOUNTAIN+17%3F")
    assert page.links("/samples/") == [f"{EDIT}/samples/q17"]
    assert "No sample matches" in said(client.get(f"{EDIT}?q=input"))
    assert len(client.get(f"{EDIT}?q=evil").links("/samples/")) == 1
    first = client.get(EDIT)
    (following,) = first.links("after=")
    assert client.get(following).links("/samples/")[0] == f"{EDIT}/samples/q25"
    for query in ("after=x", "changes=-1"):
        assert client.get(f"{EDIT}?{query}").status == 400
    for address in (f"{EDIT}/samples/none", "/datasets/none/edit/samples/q1"):
        assert client.get(address).status == 404


def test_edits_that_cannot_be_read_are_said(client: Client, folder: Path) -> None:
    for text in ("", "x", "{}", '{"format": "dataset_edits/9"}', '{"format": "dataset_edits/1"}\n{}'):
        (folder / f"{NAME}{EDITS}").write_text(text)
        reply = client.get(EDIT)
        assert (reply.status, "can't be read" in said(reply)) == (503, True), said(reply)
        assert client.get("/datasets").status == 200


def test_edits_of_a_version_that_is_gone_overwrite_nothing(client: Client, url: str, folder: Path) -> None:
    assert change(client, "q1", reference="one") == 303
    seen = form_in(client.get(EDIT).text, "/drafts/save")
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("DELETE FROM items", {})
    for reply in (client.get(EDIT), client.post("/drafts/save", seen)):
        assert (reply.status, "are gone from the ledger" in said(reply)) == (503, True)
    assert not (folder / NAME).exists()


def test_all_samples_removed_is_no_dataset(url: str, folder: Path) -> None:
    evaluate(Dataset([SAMPLES[0]], NAME), [Given()], ledger=url)
    client = pages(url, folder)
    assert send(client, f"{EDIT}/samples/q0", "/drafts/remove") == 303
    reply = client.post("/drafts/save", form_in(client.get(EDIT).text, "/drafts/save"))
    assert "at least one sample" in said(reply)
    assert not (folder / NAME).exists()


# ---- Samples of runs and of live scores ----


def collect(client: Client, address: str, **fields: str) -> Any:
    return client.post("/drafts/collect", {**form_in(client.get(address).text, "/drafts/collect"), **fields})


def test_failing_samples_are_added_to_a_new_dataset_with_their_expected_answers(client: Client, folder: Path) -> None:
    run = client.get("/runs.json").json[0]["id"]
    page = client.get(f"/runs/{run}")
    assert page.text.count('form="collect"') > 10
    odd = "a%252Fb%253F%25E2%2580%25AE%2523%25ED%25A0%2580%2520%25252F"
    address = f"/collect?run={run}&key=q1&key={odd}&key=q1"
    words = said(client.get(address))
    assert "Add 2 samples to a dataset" in words
    assert "2 of 2 will be added" in words
    reply = collect(client, address, **{"reference 0": "corrected"})
    edit = "/datasets/answers-selected.jsonl/edit"
    assert (reply.status, reply.headers["location"]) == (303, f"{edit}#changes")
    again = client.get(f"/collect?run={run}&key=q1&key=q2")
    assert "answers-selected.jsonl" in said(again)
    assert "its expected answer changes" in said(again)  # back to the run's
    assert collect(client, f"/collect?run={run}&key=q2").status == 303
    reply = client.post("/drafts/save", form_in(client.get(edit).text, "/drafts/save"))
    assert reply.headers["location"] == "/datasets/answers-selected.jsonl"
    expected = [replace(SAMPLES[1], reference="corrected"), HOSTILE_SAMPLE, SAMPLES[2]]
    assert [*load(folder / "answers-selected.jsonl")] == expected
    assert client.get("/datasets/answers-selected.jsonl").status == 200


def test_a_sample_is_added_once_and_another_one_of_its_id_gets_another(client: Client, url: str, folder: Path) -> None:
    changed = [replace(SAMPLES[1], output="0.25"), replace(SAMPLES[2], id="other"), SAMPLES[3]]
    run = evaluate(Dataset(changed, "others.jsonl"), [Given()], ledger=url).id
    address = f"/collect?run={run}&all=1&sort=order&into={NAME}"
    words = said(client.get(address))
    assert "another sample has this ID: it is added as q1 (2)" in words
    assert "is there already as q2" in words
    assert "1 of 3 will be added" in words
    assert collect(client, address).status == 303
    assert "0" not in re.findall(r"(\d+) added", said(client.get(EDIT)))
    assert save(client) == 303
    assert [*load(folder / NAME)] == [*SAMPLES, HOSTILE_SAMPLE, replace(changed[0], id="q1 (2)")]


def test_a_list_that_changed_meanwhile_is_not_added(client: Client) -> None:
    run = client.get("/runs.json").json[0]["id"]
    seen = form_in(client.get(f"/collect?run={run}&key=q1").text, "/drafts/collect")
    assert collect(client, f"/collect?run={run}&key=q2").status == 303
    assert client.post("/drafts/collect", seen).status == 409
    for query, status in (("", 400), (f"run={run}", 400), (f"run={run}&key=none", 404), ("run=none&key=x", 404)):
        assert client.get(f"/collect?{query}").status == status
    reply = client.get("/collect?new=begun")
    assert (reply.status, reply.headers["location"]) == (303, "/datasets/begun.jsonl/edit")


@pytest.mark.parametrize("into", ["%FF", "name=%FF", "name=", "x", "name=%ED%A0%80", "name=../../x"])
def test_the_name_of_a_dataset_in_a_form_may_be_anything(client: Client, url: str, folder: Path, into: str) -> None:
    with Ledger(url) as ledger:
        (run,) = ledger.runs()
    reply = client.post("/drafts/collect", {"into": into, "place": f"run={run.id}&all=1", "state": "x"})
    assert (reply.status, "bug" in reply.words) == (409 if into.startswith("name=") and len(into) > 8 else 400, False)
    assert [path.name for path in folder.iterdir()] in ([], [LOCK])


def test_without_a_ledger_no_dataset_is_edited() -> None:
    pages_of_none = Client(application(Shelf(None)))
    for address in (EDIT, f"{EDIT}/new", f"{EDIT}/samples/q1"):
        reply = pages_of_none.get(address)
        assert (reply.status, "There is no ledger to write to." in reply.words) == (403, True)
