"""The pages of scorers: what they are, what they ask, and what they gave."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from evalstone import Run, Sample, evaluate
from evalstone.cli.catalog import scorers
from evalstone.questions.claims import VerifyClaims
from evalstone.scorers import SCORERS
from evalstone.view.app import application
from evalstone.view.shelf import Shelf
from tests.runs import Given, samples_of
from tests.view.conftest import Client

HOSTILE = '</div><script>alert("x")</script>'


class Odd(Given):
    """A scorer of one's own."""

    name = "odd_scorer"
    lower_is_better = True

    def description(self) -> str:
        return f"{HOSTILE}\nsecond line"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Client, Run, Run]:
    url = str(tmp_path_factory.mktemp("scorers") / "ledger.db")
    sample = Sample(id="a", input="How high?", output="It is 10 m high.", context=["The tower is 10 m high."])
    first = evaluate([sample], ["faithfulness", "f1_tokens"], ledger=url, name="early")
    second = evaluate(samples_of(["0.5", "0.25"]), [Odd(), "contains(expected='x')"], ledger=url, name="late")
    return Client(application(Shelf(url))), first, second


def test_scorers_of_runs_are_listed_before_all_others_that_are_built_in(shown: tuple[Client, Run, Run]) -> None:
    client, _, second = shown
    names = [row["name"] for row in client.get("/scorers.json").json]
    assert names[:4] == ["odd_scorer", "contains", "faithfulness", "f1_tokens"]
    assert sorted(names[1:]) == sorted(SCORERS)
    rows = {row["scorer"]: row for row in csv.DictReader(io.StringIO(client.get("/scorers.csv").text))}
    assert (rows["odd_scorer"]["mean"], rows["odd_scorer"]["last_run"]) == ("0.375", second.id)
    assert (rows["faithfulness"]["judge_calls"], rows["bleu"]["runs"]) == ("2", "0")
    found = client.get("/scorers?q=supported+PASSAGES").links("^/scorers/")
    assert ("/scorers/faithfulness" in found, "/scorers/bleu" in found) == (True, False)
    assert "<script>alert" not in client.get("/scorers").text


def test_a_built_in_scorer_is_described_as_on_the_command_line_with_its_prompts(
    shown: tuple[Client, Run, Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, first, _ = shown
    data = client.get("/scorers/faithfulness.json").json
    assert scorers(["faithfulness"], as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    assert {name: data[name] for name in said} == said
    assert [prompt["kind"] for prompt in data["prompts"]] == ["list_claims", "verify_claims"]
    assert data["prompts"][1]["fingerprint"] == VerifyClaims.prompt.fingerprint
    assert data["prompts"][1]["fingerprint"] in first.scorers[0].signature
    page = client.get("/scorers/faithfulness")
    assert "faithfulness = supported claims / claims" in page.words
    assert VerifyClaims.prompt.instructions.split("\n")[0] in page.text.replace("&#39;", "'").replace("&#34;", '"')
    assert page.links("^/runs/") == [f"/runs/{first.id}"]
    assert "other prompts" not in page.words
    assert [row["run"] for row in csv.DictReader(io.StringIO(client.get("/scorers/faithfulness.csv").text))] == [
        first.id
    ]


def test_a_scorer_of_ones_own_is_described_by_its_runs(shown: tuple[Client, Run, Run]) -> None:
    client, _, second = shown
    page = client.get("/scorers/odd_scorer")
    assert ("lower is better" in page.words, "second line" in page.words) == (True, True)
    assert "<script>alert" not in page.text
    assert page.links("^/runs/[^/]*$") == [f"/runs/{second.id}"]
    assert "contains(expected=x)" in client.get("/scorers/contains").words


def test_every_built_in_scorer_has_a_page(tmp_path: Path) -> None:
    client = Client(application(Shelf(None, [str(tmp_path)])))
    for name in (*SCORERS, "geval", "llm_classifier"):
        assert client.get(f"/scorers/{name}").status == 200, name
    assert client.get("/scorers/nothing").status == 404
