"""The page of failure modes: from notes to modes, counts, and files that run as they are."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from evalstone import Sample, ScriptedJudge, calibrate, evaluate, load
from evalstone._core.prompts import Prompt
from evalstone.judge_quality.failure_modes import identifier, scorer_source
from evalstone.ledger.labels import Label, Mode, labels, mode_labels, modes, write_label
from evalstone.ledger.store import Ledger
from evalstone.stats.intervals import proportion_interval
from evalstone.view.shelf import Shelf
from tests.runs import Given
from tests.view.conftest import Client, client_of

SAMPLES = [
    Sample(
        id=f"s{number}", input="When?", output=f"0.{number}", context=["Then."],
        metadata={"lang": "de" if number % 2 else "en"},
    )
    for number in range(10)
]  # fmt: skip


@pytest.fixture
def run(url: str) -> str:
    made = evaluate(SAMPLES, [Given()], ledger=url, name="main")
    with Ledger(url) as ledger:
        for number in range(6):
            write_label(
                ledger,
                Label(
                    run=made.id, sample=f"s{number}", signature=made["given"].info.signature, annotator="ada",
                    value=0.0, note=f"note {number}" if number < 4 else "", chosen="random", written=float(number),
                ),
            )  # fmt: skip
    return made.id


@pytest.fixture
def client(url: str, run: str) -> Client:
    return client_of(url)


def send(client: Client, action: str, run: str, sample: str = "", **fields: str) -> int:
    place = {"run": run, **({"sample": sample} if sample else {})}
    reply = client.post(f"/modes/{action}", {"place": urlencode(place, errors="surrogatepass"), **fields})
    if reply.status == 303:
        assert reply.headers["location"] == f"/modes?{urlencode(place, errors='surrogatepass')}"
    return reply.status


def found(url: str, run: str) -> dict[str, list[str]]:
    """The samples of each mode, by its name."""
    with Ledger(url, read_only=True) as ledger:
        given = mode_labels(ledger, run)
        return {
            mode.name: [each.key for each in given if each.mode == mode.id]
            for mode in modes(ledger, Shelf(url).cards()[0].metadata.dataset.name)  # type: ignore[union-attr]
        }


def mode_id(client: Client, run: str, name: str) -> str:
    return next(mode["id"] for mode in client.get(f"/modes.json?run={run}").json if mode["name"] == name)


def test_notes_become_modes_that_are_renamed_merged_and_taken_away(url: str, run: str, client: Client) -> None:
    shown = client.get(f"/modes?run={run}")
    assert "6 reviewed samples, 4 with a note that has no mode yet" in shown.words
    assert re.search(r"ada · given 0\S* note 0", shown.words)
    for sample, name in (("s0", "wrong year"), ("s1", " Wrong  YEAR "), ("s1", "rude"), ("s2", "impolite")):
        assert send(client, "create", run, sample, name=name) == 303
    assert found(url, run) == {"wrong year": ["s0", "s1"], "rude": ["s1"], "impolite": ["s2"]}
    assert "note 3" in client.get(f"/modes?run={run}").words.partition("Counts")[0]
    rude, impolite = (mode_id(client, run, name) for name in ("rude", "impolite"))
    assert send(client, "assign", run, "s2", mode=rude) == 303
    assert send(client, "assign", run, "s1", mode=rude) == 303
    assert found(url, run)["rude"] == ["s2"]
    assert send(client, "merge", run, mode=impolite, into=rude) == 303
    assert send(client, "change", run, mode=rude, name="discourteous", definition="It insults.") == 303
    assert found(url, run) == {"wrong year": ["s0", "s1"], "discourteous": ["s2"]}
    assert send(client, "change", run, mode=rude, name="WRONG year") == 400
    assert send(client, "merge", run, mode=rude, into="") == 303
    assert found(url, run) == {"wrong year": ["s0", "s1"]}


def test_modes_are_counted_with_intervals_and_by_slice(run: str, client: Client) -> None:
    for sample in ("s0", "s1", "s2"):
        send(client, "create", run, sample, name="wrong year")
    words = client.get(f"/modes?run={run}&slice=lang").words
    assert "3 of 6" in words
    german, english = (proportion_interval(has, 3) for has in (1, 2))
    for has, share in ((1, german), (2, english)):
        assert share is not None
        assert f"{has} of 3 {share.estimate:.2f} ({share.low:.2f} to {share.high:.2f})" in words
    (data,) = client.get(f"/modes.json?run={run}&slice=lang").json
    assert (data["samples"], data["reviewed"]) == (["s0", "s1", "s2"], 6)
    assert data["slices"] == {"de": {"samples": 1, "reviewed": 3}, "en": {"samples": 2, "reviewed": 3}}
    assert 0 < data["share"]["low"] < data["share"]["estimate"] < data["share"]["high"] < 1
    (row,) = csv.DictReader(io.StringIO(client.get(f"/modes.csv?run={run}").text))
    assert (row["mode"], row["samples"], float(row["share"])) == ("wrong year", "3", data["share"]["estimate"])


def test_a_mode_is_a_scorer_and_a_dataset_that_run_as_they_are(
    run: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sample in ("s0", "s2"):
        send(client, "create", run, sample, name='Wrong "year"!')
    mode = mode_id(client, run, 'Wrong "year"!')
    send(client, "change", run, mode=mode, name='Wrong "year"!', definition='It says {{x}} or """.\nOr \\N.')
    files = {"wrong_year.py": "scorer.py", "wrong_year.jsonl": "dataset.jsonl"}
    for name, file in files.items():
        reply = client.get(f"/modes/{mode}/{file}?run={run}")
        assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'
        (tmp_path / name).write_bytes(reply.body)
    monkeypatch.chdir(tmp_path)
    assert [sample.id for sample in load("wrong_year.jsonl")] == [f"s{number}" for number in range(6)]
    verdicts = [json.loads(line)["has_wrong_year"] for line in Path("wrong_year.jsonl").read_text().splitlines()]
    assert verdicts == ["yes", "no", "yes", "no", "no", "no"]
    judge = ScriptedJudge([{"reason": "It is so.", "verdict": word} for word in verdicts])
    made = evaluate("wrong_year.jsonl", "wrong_year.py:wrong_year", judge=judge, ledger=None)
    assert made["wrong_year"].info.lower_is_better
    assert 'Wrong "year"!? It says { {x}} or """. Or \\N.' in made["wrong_year"].info.description
    judge = ScriptedJudge([{"reason": "It is so.", "verdict": word} for word in verdicts])
    calibration = calibrate(
        "wrong_year.jsonl", "wrong_year.py:wrong_year", label="has_wrong_year", judge=judge, ledger=None
    )
    assert [pair.labels for pair in calibration.pairs] == [(float(word == "yes"),) for word in verdicts]


@pytest.mark.parametrize("text", ["{output}", "{{{input}}}", "{{{{ output }}}}", "{{output}", "{ input }}"])
def test_nothing_is_filled_into_the_words_of_a_mode(text: str) -> None:
    source: dict[str, Any] = {}
    exec(scorer_source(Mode(id="m", dataset="d", name="odd", definition=text), ()), source)
    judge = ScriptedJudge([{"reason": "It is so.", "verdict": "yes"}])
    made = evaluate([Sample(id="s", input="QUESTION", output="ANSWER")], [source["odd"]], judge=judge, ledger=None)
    assert made["odd"].n_score == 1
    assert "this failure: odd? {" in made["odd"].info.description
    assert Prompt("", made["odd"].info.description).placeholders == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Wrong year", "wrong_year"), ("1st", "mode_1st"), ("日本", "mode"), ("class", "mode_class"),
     ("Secrets", "mode_secrets"), ("NumPy", "mode_numpy"), ("evalstone", "mode_evalstone"), ("a" * 99, "a" * 50),
     ("../../etc", "etc"), ("'; import os", "import_os"), ("\u202e", "mode")],
)  # fmt: skip
def test_a_mode_has_a_name_in_code(name: str, expected: str) -> None:
    assert identifier(name) == expected


HOSTILE = '"><script>alert(1)</script>{{output}}\u202e'


def test_hostile_names_and_notes_stay_text(url: str, run: str, client: Client) -> None:
    with Ledger(url) as ledger:
        write_label(ledger, replace(labels(ledger, run)[0], note=HOSTILE))
    send(client, "create", run, "s0", name=HOSTILE[:90], definition=HOSTILE)
    shown = client.get(f"/modes?run={run}&sample=s0")
    assert "<script>alert" not in shown.text
    assert html.escape("<script>alert(1)", quote=False) in shown.text
    source = client.get(f"/modes/{mode_id(client, run, HOSTILE[:90])}/scorer.py?run={run}").text
    compile(source, "scorer.py", "exec")
    assert "{{output}}" not in source


@pytest.mark.parametrize(
    ("action", "fields", "status"),
    [
        ("create", {"name": " "}, 400),
        ("create", {"name": "x" * 101}, 400),
        ("assign", {"mode": "nothing"}, 404),
        ("change", {"mode": "nothing", "name": "x"}, 404),
        ("merge", {"mode": "nothing"}, 404),
        ("create", {"name": "x", "place": "run=nothing"}, 404),
        ("create", {"name": "x", "place": "sample=x"}, 404),
    ],
)
def test_a_change_that_makes_no_sense_is_not_written(
    url: str, run: str, client: Client, action: str, fields: dict[str, str], status: int
) -> None:
    assert send(client, action, run, "s0", **fields) == status
    assert send(client, "create", run, "no such sample", name="x") == 404
    assert found(url, run) == {}
    assert client.get(f"/modes?run={run}&sample=nothing").status == 404
    assert client.get("/modes").status == 400


def test_where_nothing_can_be_written_modes_are_shown_only(url: str, run: str, client: Client) -> None:
    send(client, "create", run, "s0", name="wrong year")
    reading = client_of(url, read_only=True)
    shown = reading.get(f"/modes?run={run}&sample=s0")
    assert ('<form method="post"' in shown.text, "wrong year" in shown.words, "1 of 6" in shown.words) == (
        False,
        True,
        True,
    )
    assert send(reading, "create", run, "s0", name="x") == 403
