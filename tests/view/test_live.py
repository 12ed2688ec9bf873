"""The pages of live scores: figures, coverage and drift as the commands have them, the list, a score, a dataset."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from evalstone import Sample, ScriptedJudge, evaluate, load
from evalstone import score as score_one
from evalstone.ledger import live
from evalstone.ledger.base import HOUR, sample_hash
from evalstone.ledger.live import LiveCounts, LiveScore
from evalstone.ledger.scores import list_scores
from evalstone.ledger.store import Ledger
from evalstone.live.accounting import coverage
from evalstone.live.score_drift import drift
from evalstone.types import Failed, Message, Outcome, Record, Score, Skipped, ToolCall, scorer_name
from evalstone.view.app import application
from evalstone.view.shelf import Shelf
from tests.fakes import claims, verdicts
from tests.report.hostile import HOSTILE
from tests.runs import Given, Harm, samples_of
from tests.view.conftest import Client, client_of

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()
ODD = "a/b?c=1#d\u202e.json"
RISING, FALLING = Given().signature, Harm().signature


def submit(
    ledger: Ledger,
    number: int,
    outcomes: dict[str, Outcome | Record | None],
    *,
    sample: Sample | None = None,
    pending: tuple[str, ...] = (),
    hours: float = 0.0,
    **fields: Any,
) -> None:
    """Write the outcomes of one submission by signature."""
    at = NOON + hours * HOUR + number
    sample = sample or Sample(input=f"Question {number}?", output=f"Answer {number}.")
    kept: dict[str, Any] = {
        "stream": "shop",
        "source": "live",
        "entity": "agent",
        "sample": sample_hash(sample),
        **fields,
    }
    rows = [
        LiveScore(id=f"o/{number}/{place}", signature=signature, owner="o", submitted=at, **kept)
        for place, signature in enumerate([*outcomes, *pending])
    ]
    hour = int(at // HOUR)
    known = {each.signature: each.seen for each in live.counts(ledger, kept["stream"])[0] if each.hour == hour}
    counted = [
        LiveCounts(
            stream=kept["stream"], signature=row.signature, owner="o", hour=hour, seen=seen, eligible=seen,
            accepted=seen,
        )
        for row in rows
        for seen in [known.get(row.signature, 0) + 1]
    ]  # fmt: skip
    mine = live.write_frame(ledger, counted, rows, [sample])
    ended = zip(mine, outcomes.values(), strict=False)
    live.finish(ledger, [row.ended(_record(row.signature, outcome)) for row, outcome in ended])


def change(url: str, statement: str) -> None:
    """Change a ledger's rows."""
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute(statement)


def _record(signature: str, outcome: Outcome | Record | None) -> Record | None:
    if outcome is None or isinstance(outcome, Record):
        return outcome
    return Record(sample_id="q", scorer=scorer_name(signature), signature=signature, outcome=outcome)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger with a stream of two scorers: five submissions. A run says which way is better."""
    url = str(tmp_path / "ledger.db")
    evaluate(samples_of(["1"]), [Given(), Harm()], ledger=url, name="base")
    with Ledger(url) as ledger:
        submit(ledger, 0, {RISING: Score(0.25, "barely"), FALLING: Score(0.0, "none", scale=1.0)})
        submit(ledger, 1, {RISING: Score(1.0), FALLING: Score(0.9, "rude")}, entity="other", source="trace")
        submit(ledger, 2, {RISING: Failed("the judge is down"), FALLING: Skipped("no claims")})
        submit(ledger, 3, {RISING: None}, pending=(FALLING,))
        submit(ledger, 4, {RISING: Score(0.5, "half"), FALLING: Score(0.1)}, trace="4bf9")
    return url


@pytest.fixture
def client(url: str) -> Client:
    return Client(application(Shelf(url)))


def names(reply: Any) -> list[str]:
    """The IDs in the list of a page, in its order."""
    return re.findall(r'name="id" value="([^"]*)"', reply.text)


def test_the_figures_and_the_coverage_are_those_of_the_ledger(client: Client, url: str) -> None:
    data = client.get("/live/shop.json").json
    assert data["coverage"] == coverage("shop", ledger=url).to_dict()
    total = data["coverage"]["total"]
    assert total["sampled"] == (
        sum(total["dropped"].values()) + total["n_score"] + total["n_skipped"] + total["n_failed"] + total["pending"]
    )
    assert total["unaccounted"] == 0
    (rising, falling) = data["scorers"]
    assert (rising["scorer"], rising["mean"], rising["score"], rising["failed"], rising["dropped"]) == (
        "given", pytest.approx(1.75 / 3), 3, 1, 1,
    )  # fmt: skip
    assert (falling["mean"], falling["skipped"], falling["pending"]) == (pytest.approx(1.0 / 3), 1, 1)
    entities = {(line["entity"], line["signature"]): line["mean"] for line in data["entities"]}
    assert entities["other", RISING] == 1.0
    assert entities["agent", RISING] == pytest.approx(0.375)
    assert [line["source"] for line in data["sources"] if line["signature"] == RISING] == ["live", "trace"]
    page = client.get("/live/shop")
    assert (page.status, "unaccounted" in page.words) == (200, False)
    assert "dropped: budget spent 1 0 1 scores 3 3 6 skipped 0 1 1 failed 1 0 1 pending 0 1 1" in page.words.replace(
        "&emsp;", ""
    )
    assert client.get("/live.json").json["scorers"][0]["coverage"] == data["coverage"]["scorers"][0]["coverage"]
    assert client.get("/live.csv").text.splitlines()[1].startswith(f'"shop","given","{RISING}",0.583')


def test_the_list_begins_with_the_worst_and_goes_on_by_key(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    worst = ["o/1/1", "o/0/0", "o/4/0", "o/4/1", "o/1/0", "o/0/1"]
    assert names(client.get("/live/shop")) == worst
    latest = ["o/4/1", "o/4/0", "o/3/1", "o/3/0", "o/2/1", "o/2/0", "o/1/1", "o/1/0", "o/0/1", "o/0/0"]
    assert names(client.get("/live/shop?show=latest")) == latest
    monkeypatch.setattr("evalstone.view.pages.live_list.PER_PAGE", 2)
    monkeypatch.setattr("evalstone.view.pages.live.PER_PAGE", 2)
    for start, every in (("/live/shop", worst), ("/live/shop?show=latest", latest)):
        found, address = list[str](), start
        while address:
            reply = client.get(address)
            found += names(reply)
            address = next((link for link in reply.links("after=") if "/scores/" not in link), "")
        assert found == every
    score = client.get(next(link for link in client.get("/live/shop").links("/scores/") if "%2F0%2F0" in link))
    before, after = (link for link in score.links("/scores/.*after="))
    assert ("o%2F1%2F1" in before, "o%2F4%2F0" in after) == (True, True)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("show=failed", ["o/2/0"]),
        ("show=skipped", ["o/2/1"]),
        ("show=dropped", ["o/3/0"]),
        ("show=pending", ["o/3/1"]),
        ("scorer=harm", ["o/1/1", "o/4/1", "o/0/1"]),
        ("entity=other", ["o/1/1", "o/1/0"]),
        ("source=trace&scorer=given", ["o/1/0"]),
        ("since=2027-01-15T12:30&scorer=given", ["o/0/0", "o/4/0", "o/1/0"]),
        ("until=2027-01-15T12:00", []),
        ("entity=nobody", []),
    ],
)
def test_filters_are_in_the_address_and_hold_for_whole_hours(client: Client, query: str, found: list[str]) -> None:
    reply = client.get(f"/live/shop?{query}")
    assert (reply.status, sorted(names(reply))) == (200, sorted(found))
    rows = list(csv.DictReader(io.StringIO(client.get(f"/live/shop.csv?{query}").text)))
    assert len(rows) == len(found)


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/live/other", 404, "There is no stream other in"),
        ("/live/shop/scores/none", 404, "The stream shop has no score none."),
        ("/live/shop?since=yesterday", 400, "since takes a time such as 2026-01-31"),
        ("/live/shop?since=1h&until=2h", 400, "until must be after since"),
        ("/live/shop?show=best", 400, "best"),
        ("/live/shop?source=run", 400, "run"),
        ("/live/shop?after=x", 400, "after must be a place in the list"),
        ("/live/shop?after=[1e999,1]", 400, "after must be a place in the list"),
        ("/live/shop?baseline=none", 404, "There is no run none"),
        ("/live/shop/dataset.jsonl", 400, "No score is chosen"),
        ("/live/shop/dataset.jsonl?id=x", 404, "have all of these scores"),
        ("/live/%ff", 400, "not valid UTF-8"),
    ],
)
def test_what_makes_no_sense_is_said(client: Client, address: str, status: int, text: str) -> None:
    reply = client.get(address)
    assert (reply.status, text in reply.words) == (status, True), reply.words


def test_an_empty_ledger_and_none_say_so_and_only_live_scores_have_a_link(tmp_path: Path, client: Client) -> None:
    assert client.get("/").links("^/live$") == ["/live"]
    empty = str(tmp_path / "empty.db")
    Ledger(empty).close()
    pages = Client(application(Shelf(empty)))
    assert pages.get("/").links("^/live") == []
    assert (pages.get("/live").status, "Nothing was scored live yet" in pages.get("/live").words) == (200, True)
    assert "Nothing was scored live yet." in pages.get("/live/shop").words
    folders = Client(application(Shelf(None, [str(tmp_path)])))
    assert folders.get("/live").status == folders.get("/live/shop").status == 404


def test_names_may_be_any_text(tmp_path: Path) -> None:
    url = str(tmp_path / "odd.db")
    with Ledger(url) as ledger:
        sample = Sample(input=HOSTILE[0], output=HOSTILE[1])
        submit(ledger, 0, {RISING: Score(0.5, HOSTILE[2])}, stream=ODD, entity=HOSTILE[0], sample=sample)
    client = Client(application(Shelf(url)))
    (address,) = client.get("/live").links("^/live/[^?]*$")
    page = client.get(address)
    assert (page.status, "<script>alert" in page.text.replace('<script type="module"', "")) == (200, False)
    assert page.links("entity=")
    assert client.get(page.links("entity=")[0]).status == 200
    (score,) = page.links("/scores/")
    assert client.get(score).status == 200
    assert client.get(f"{address}.json").json["stream"] == ODD
    assert "\u202e" not in client.get(f"{address}.csv").headers["content-disposition"]


def test_looking_changes_nothing_in_the_folder_of_the_ledger(client: Client, url: str) -> None:
    def state() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in Path(url).parent.iterdir() if file.is_file()}

    before = state()
    assert client.get("/live/shop").status == client.get("/live").status == 200
    assert coverage("shop", ledger=url).total.n_score == len([*list_scores(url, stream="shop")]) - 4
    assert state() == before


def test_what_changes_is_read_again_and_nothing_else(client: Client, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client.get("/live/shop")
    read: list[float | None] = []
    counts = live.counts

    def counting(*args: Any, tallied_since: float | None = None, **options: Any) -> Any:
        read.append(tallied_since)
        return counts(*args, tallied_since=tallied_since, **options)

    monkeypatch.setattr("evalstone.view.live_figures.counts", counting)
    client.get("/live/shop?entity=other")
    assert read == []
    with Ledger(url) as ledger:
        submit(ledger, 9, {RISING: Score(0.0)}, hours=30)
        assert client.get("/live/shop.json").json["scorers"][0]["score"] == 4
        # The hour with the pending row is read again too.
        assert read == [NOON]
        with ledger.transaction(writing=True) as database:
            database.execute("DELETE FROM live_scores WHERE position = 1")
    assert client.get("/live/shop.json").json["scorers"][0]["score"] == 3
    assert read == [NOON, None]
    with Ledger(url) as ledger:
        # Sums of hours that stay are kept, and continued.
        for number, hours in ((11, 30), (12, 30), (13, 31), (14, 200)):
            submit(ledger, number, {RISING: Score(0.1), FALLING: Score(0.3)}, hours=hours)
            client.get("/live/shop")
    assert client.get("/live/shop.json").json == Client(application(Shelf(url))).get("/live/shop.json").json


@pytest.fixture
def judged(tmp_path: Path) -> tuple[str, Sample, Record]:
    """A ledger with a score of a sample with messages, its sample and its record."""
    sample = Sample(
        input="Where is Bern?",
        output="In France.",
        context=("Bern is in Switzerland.",),
        messages=(
            Message(role="user", content="Where is Bern?"),
            Message(role="assistant", content="", tool_calls=(ToolCall(name="atlas", arguments={"q": "Bern"}),)),
            Message(role="assistant", content="In France."),
        ),
        metadata={"trace": {"trace_id": "4bf9"}},
    )
    judge = ScriptedJudge([claims("Bern is in France."), verdicts("contradicted")])
    record = score_one("faithfulness", sample=sample, judge=judge)
    url = str(tmp_path / "judged.db")
    with Ledger(url) as ledger:
        outcomes: dict[str, Outcome | Record | None] = {record.signature: record, "contains@1": Failed("no reference")}
        submit(ledger, 0, outcomes, sample=sample, trace="4bf9", entity="guide")
    return url, sample, record


def test_a_score_shows_its_sample_its_tool_calls_and_its_judge_calls(judged: tuple[str, Sample, Record]) -> None:
    url, _, record = judged
    client = Client(application(Shelf(url)))
    address = "/live/shop/scores/o%2F0%2F0"
    page = client.get(address)
    for text in (
        "Where is Bern?",
        "In France.",
        "atlas",
        "contradicted",
        "no reference",
        "4bf9",
        "guide",
        "list_claims",
    ):
        assert text in page.words, text
    data = client.get(f"{address}.json").json
    assert data["sample"]["messages"][1]["tool_calls"][0]["name"] == "atlas"
    assert data["scores"][0]["record"] == json.loads(json.dumps(record.to_dict()))
    asked: Any = [*data["asked"][record.signature].values()]
    assert len(asked) == len(record.calls) == 2


def test_samples_become_a_dataset_that_runs_read(judged: tuple[str, Sample, Record], tmp_path: Path) -> None:
    url, sample, _ = judged
    with Ledger(url) as ledger:
        own = [Sample(id="q7", input="One?", output="1"), Sample(id="q7", input="Two?", output="2")]
        for number, each in enumerate((*own, sample), start=1):
            submit(ledger, number, {RISING: Score(0.5)}, sample=each)
    client = Client(application(Shelf(url)))
    one = client.get("/live/shop/dataset.jsonl?id=o/0/0&id=o/0/1")
    assert one.headers["content-disposition"] == 'attachment; filename="shop.jsonl"'
    file = tmp_path / "one.jsonl"
    file.write_bytes(one.body)
    assert load(str(file)).samples == (sample,)
    (every,) = client.get("/live/shop?show=latest").links("all=1")
    file.write_bytes(client.get(every).body)
    assert [each.input for each in load(str(file)).samples] == ["Where is Bern?", "Two?", "One?"]
    assert {each.id for each in load(str(file)).samples} == {sample.id, "q7", "q7 (2)"}
    run = evaluate(str(file), "keyword_coverage", ledger=None)
    assert len(run.records) == 3
    assert "/collect" not in client.get("/live/shop").text
    folder = tmp_path / "datasets"
    folder.mkdir()
    client = Client(application(Shelf(url, datasets=str(folder))))
    (every,) = client.get("/live/shop?show=latest").links("^/collect.*all=1")
    assert client.get("/live/shop/scores/o%2F0%2F0").links("^/collect")[0] == "/collect?stream=shop&id=o%2F0%2F0"
    assert "Add 1 sample to a dataset" in client.get("/collect?stream=shop&id=o/0/0&id=o/0/1").words
    for address, status in (("?stream=shop", 400), ("?stream=shop&id=x", 404)):
        assert client.get(f"/collect{address}").status == status
    page = client.get(every).text
    fields = dict(re.findall('<input type="hidden" name="(token|place|into|state)" value="([^"]*)"', page))
    fields = {name: html.unescape(value) for name, value in fields.items()}
    assert client.post("/drafts/collect", {**fields, "reference 0": "Bern"}, token=fields["token"]).status == 303
    page = client.get("/datasets/shop-selected.jsonl/edit").text
    save = dict(
        re.findall('<input type="hidden" name="(place|state)" value="([^"]*)"', page.partition("/drafts/save")[2])
    )
    assert client.post("/drafts/save", save, token=fields["token"]).status == 303
    saved = load(folder / "shop-selected.jsonl").samples
    assert [(each.id, each.reference) for each in saved] == [(sample.id, "Bern"), ("q7", None), ("q7 (2)", None)]
    assert saved[0].messages == sample.messages


def test_drift_is_what_the_command_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "ledger.db")
    run = evaluate(
        [{"output": "Paris", "input": f"{n}"} for n in range(60)], "contains(expected=Paris)", ledger=url, name="base"
    )
    (info,) = run.scorers
    with Ledger(url) as ledger:
        begin = time.time() - 3 * HOUR - NOON
        for number in range(60):
            submit(ledger, number, {info.signature: Score(0.0)}, hours=begin / HOUR, trace=f"t{number}")
        with ledger.transaction(writing=True) as database:
            database.execute("UPDATE live_scores SET finished = submitted")
    client = Client(application(Shelf(url)))
    assert client.get("/live/shop").links("baseline") == []
    page = client.get(f"/live/shop?baseline={quote(run.id)}")
    while page.headers.get("refresh"):
        time.sleep(0.05)
        page = client.get(f"/live/shop?baseline={quote(run.id)}")
    found = drift(run, stream="shop", ledger=url)
    assert found["contains"].verdict == "drifted"
    for part in found.view().sections:
        for sentence in part.notes:
            assert " ".join(sentence.replace(">", "&gt;").split()) in page.words
    assert "Against base : drifted as of" in page.words
    assert "has no scores by a scorer of the baseline" not in page.words


@pytest.mark.parametrize("period", ["since=2027-02-01", "until=2027-01-01", "until=9999-12-31T23:59"])
def test_a_score_has_its_page_and_a_scorer_its_title_in_every_period(client: Client, url: str, period: str) -> None:
    page = client.get(f"/live/shop/scores/o%2F0%2F0?{period}")
    assert (page.status, "barely" in page.words) == (200, True)
    with Ledger(url) as ledger:
        submit(ledger, 20, {"contains(expected=a)@1": Score(1.0)}, hours=24, stream="two")
        submit(ledger, 21, {"contains(expected=b)@1": Score(1.0)}, hours=48, stream="two")
    (scorer,) = client.get("/live/two.json?since=2027-01-17T12:00").json["scorers"]
    assert scorer["scorer"] == "contains(expected=b)"
    assert client.get(f"/live/shop?{period}").status == 200


def test_a_score_whose_signature_the_ledger_escapes_has_a_page(url: str) -> None:
    signature = "contains(expected=\ud800\x00)@1"
    with Ledger(url) as ledger:
        submit(ledger, 7, {signature: Score(0.5, "as it is")})
    page = client_of(url).get("/live/shop/scores/o%2F7%2F0")
    assert (page.status, "as it is" in page.words) == (200, True)
    assert client_of(url).get("/live/shop/scores/o%2F7%2F0.json").json["scores"][0]["record"]["outcome"] == "score"


def test_damage_is_said_before_a_file_is_sent(client: Client, url: str) -> None:
    addresses = ("/live/shop/scores/o%2F0%2F0", "/live/shop.csv", "/live/shop.json")
    for statement in ("body = NULL", "body = '{'"):
        change(url, f"UPDATE live_scores SET {statement} WHERE id = 'o/0/0'")
        for address in addresses:
            reply = client.get(address)
            assert (reply.status, "live score o/0/0 in the ledger" in reply.words) == (503, True), (statement, address)
    change(url, "UPDATE samples SET body = '{'")
    reply = client.get("/live/shop/dataset.jsonl?all=1&show=latest")
    assert (reply.status, "is damaged" in reply.words) == (503, True)


def test_many_streams_come_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.view.pages.live.STREAMS_PER_PAGE", 2)
    monkeypatch.setattr("evalstone.view.live_figures.MOST_STREAMS", 2)
    url = str(tmp_path / "streams.db")
    names = ["", "a/b", "c", "d\ud800", *(f"s{n:02}" for n in range(11))]
    with Ledger(url) as ledger:
        for number, name in enumerate(names):
            submit(ledger, number, {RISING: Score(0.5)}, stream=name)
    client, found = client_of(url), list[str]()
    page, address = client.get("/live"), "/live"
    while address:
        page = client.get(address)
        assert "15 streams" in page.words
        found += page.links("^/live/[^?]*$")
        address = next(iter(page.links(r"^/live\?after=")), "")
    assert len(found) == len({*found}) == len(names)
    assert page.links("^/live$")
    listed, address = list[str](), "/live.json"
    while address:
        data = client.get(address).json
        listed += [each["stream"] for each in data["scorers"]]
        address = data["next"]
    assert len(listed) == len({*listed}) == len(names)
    assert len(client.get("/live.csv").text.splitlines()) == 1 + len(names)
    assert "It has , a/b, c, d\\ud800, s00" in client.get("/live/none").words
    assert "and 3 more" in client.get("/live/none").words


def test_a_row_that_becomes_visible_late_is_counted(client: Client, url: str) -> None:
    """Transactions may end in another order than that of their rows."""
    change(url, "UPDATE live_scores SET state = 'dropped' WHERE state = 'pending'")
    with Ledger(url) as ledger:
        submit(ledger, 6, {RISING: Score(1.0)}, hours=24)
    every = client_of(url).get("/live/shop.json").json

    def move(old: str, new: str, by: str) -> None:
        change(url, f"UPDATE live_scores SET stream = '{new}' WHERE id = 'o/1/0' AND stream = '{old}'")
        counted = ", ".join(f"{name} = {name} {by}" for name in ("seen", "eligible", "accepted"))
        change(url, f"UPDATE live_counts SET {counted} WHERE signature = '{RISING}' AND hour = {int(NOON // HOUR)}")

    move("shop", "later", "- 1")
    assert client.get("/live/shop.json").json["scorers"][0]["score"] == every["scorers"][0]["score"] - 1
    move("later", "shop", "+ 1")
    assert client.get("/live/shop.json").json == every


def test_another_ledger_at_the_same_place_is_read_again(client: Client, url: str, tmp_path: Path) -> None:
    change(url, "UPDATE live_scores SET state = 'dropped' WHERE state = 'pending'")
    client.get("/live/shop")
    other = str(tmp_path / "other.db")
    with Ledger(other) as ledger:
        for number in range(5):
            submit(ledger, number, {RISING: Score(0.75), FALLING: Score(0.0)})
    change(other, "UPDATE live_scores SET id = 'other ' || id")
    Path(other).replace(url)
    assert client.get("/live/shop.json").json == client_of(url).get("/live/shop.json").json


def test_a_watch_from_an_age_on_keeps_its_start(client: Client) -> None:
    run = client.get("/runs.json").json[0]["id"]
    page = client.get(f"/live/shop?show=latest&baseline={run}&watch=2h")
    assert page.status == 303
    found = re.fullmatch(
        rf"/live/shop\?show=latest&baseline={run}&watch=(\d{{4}}-\d\d-\d\dT\d\d%3A\d\d)", page.headers["location"]
    )
    assert found is not None
    assert client.get(page.headers["location"]).status == 200
    assert client.get("/live/shop?watch=2h").status == 200


def test_plots_periods_and_their_links_are_those_of_the_scores(client: Client, url: str) -> None:
    assert "Each point" not in client.get("/live/shop").words
    assert "2027-01-15 12:00 to 2027-01-15 13:00 UTC" in client.get("/live/shop").words
    with Ledger(url) as ledger:
        for number, hours in enumerate((1, 5, 70, 400, 401), start=10):
            submit(ledger, number, {RISING: Score(number / 20)}, hours=hours)
    page = client.get("/live/shop?since=2027-01-15T13:00&scorer=given")
    assert "Each point is the mean of 12 hours" in page.words
    assert "2027-01-15 13:00 to 2027-02-01 06:00 UTC" in page.words
    rows = page.text.partition("By time</h2>")[2].partition("</section>")[0]
    found = re.findall(
        r'href="([^"]*)">2027[^<]*</a>.*?class="mean">([^<]*)</span> <span class="under">n = (\d+)<', rows, re.S
    )
    assert [(mean, int(n)) for _, mean, n in found] == [("0.675", 2), ("0.600", 1), ("0.525", 2)]
    for address, mean, n in found:
        (one,) = client.get(address.replace("&amp;", "&").replace("/live/shop", "/live/shop.json")).json["scorers"]
        assert (f"{one['mean']:.3f}", one["score"]) == (mean, int(n))
