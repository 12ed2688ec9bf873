"""The first page: filters, order, columns, and how runs differ from the pinned baseline of their dataset."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evalstone import Run, Sample, compare, evaluate, write_run
from evalstone.errors import ConfigError
from evalstone.ledger.base import comparison_file
from evalstone.ledger.labels import pin
from evalstone.ledger.maintenance import prune
from evalstone.ledger.store import Ledger
from evalstone.view.addresses import compare_address
from evalstone.view.indexing import comparison_build, jobs
from evalstone.view.indexing.differences import Difference, Differences, over_runs
from evalstone.view.runs_query import RunsQuery
from evalstone.view.shelf import Shelf
from tests.runs import Given, Harm, run_of, samples_of
from tests.view.conftest import Reply, client_of, unfinished

LOW, HIGH = ["0.1", "0.2", "0.15", "0.3", "0.2", "0.1"] * 3, ["0.9", "0.8", "0.85", "0.7", "0.9", "0.8"] * 3


def names(reply: Reply) -> list[str]:
    """The runs of a list."""
    return re.findall(r'<th role="rowheader" scope="row">.*?href="/runs/[^"]*">([^<]*)</a>', reply.text, re.DOTALL)


def changes(reply: Reply) -> list[str]:
    """The differences in a list, row by row."""
    return re.findall(r'class="under change[^>]*>([^<]*)</a>', reply.text)


def until(found: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 30
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pinned(ledger: str, run: Run) -> None:
    with Ledger(ledger) as opened:
        pin(opened, run.dataset_name, run.id)


def test_runs_are_compared_with_the_pinned_baseline_of_their_dataset(url: str) -> None:
    base, better = (
        evaluate(samples_of(a), [Given(), Harm()], ledger=url, name=n) for n, a in (("a", LOW), ("b", HIGH))
    )
    client = client_of(url)
    assert changes(client.get("/")) == []
    pinned(url, base)
    page = client.get("/")
    lines = {line.title: line for line in compare(base, better).scorers}
    found = changes(page)
    assert [text[0] for text in found] == ["▲", "▼"]
    for text, title in zip(found, ("given", "harm"), strict=True):
        interval = lines[title].difference
        assert interval.low is not None
        assert f"{interval.estimate:+.3f} ({interval.low:+.3f} to " in text
    assert "Compared with a ★" in page.words
    assert page.links("^/compare.runs=")
    data = client.get("/runs.json").json
    assert data[0]["differences"]["of"][better.scorers[0].signature]["verdict"] == "better"
    assert (data[0]["baseline"], data[1]["differences"]) == (base.id, None)
    rows = list(csv.DictReader(io.StringIO(client.get("/runs.csv").text)))
    assert float(rows[0]["difference"]) == lines["given"].difference.estimate
    assert float(rows[0]["adjusted_p"]) == lines["given"].adjusted_p_value
    assert [row["difference"] for row in rows[2:]] == ["", ""]


@pytest.mark.slow
def test_p_values_are_corrected_for_all_runs_whatever_is_listed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.view.pages.runs.RUNS_PER_PAGE", 2)
    # Alone, the second run is better: its p-value is 0.014. Of five runs by two scorers, it isn't.
    better = [f"{float(value) + (0.5 if at < 9 else 0.05):.2f}" for at, value in enumerate(LOW)]
    answers = [LOW, better, *(LOW[shift:] + LOW[:shift] for shift in (1, 2, 3)), HIGH]
    runs = [
        evaluate(samples_of(of), [Given(), Harm()], ledger=url, name=f"n{n}", tags=["odd"] if n % 2 else [])
        for n, of in enumerate(answers)
    ]
    evaluate([Sample(id="x", input="?", output="1")], [Given()], ledger=url, name="other")  # not comparable
    pinned(url, runs[0])
    client = client_of(url)
    page = client.get("/")
    assert "corrected for all 10 comparisons with it (Holm): those of 5 runs over this dataset" in page.words
    together = compare(*runs)  # corrects over all scorers and runs
    expected = {(runs["ABCDEF".index(line.b)].id, line.info.signature): line for line in together.scorers}
    found: dict[str, set[tuple[str, str, str]]] = {}
    for address in ("/runs.json", "/runs.json?tag=odd", "/runs.json?q=n5", "/runs.json?sort=name"):
        for run in client.get(address).json:
            by_signature: dict[str, Any] = run["differences"]["of"] if run["differences"] else {}
            for signature, of in by_signature.items():
                line = expected[run["id"], signature]
                assert of["adjusted_p_runs"] == pytest.approx(line.adjusted_p_value)
                assert (of["p"], of["verdict"]) == (line.p_value, line.verdict)
                assert run["differences"]["corrected_for"] == 10
                found.setdefault(run["name"], set()).add((signature, of["verdict"], str(of["adjusted_p"] <= 0.05)))
    assert {name: {(verdict, alone) for _, verdict, alone in of} for name, of in found.items()} == {
        "n1": {("inconclusive", "True")},
        **{f"n{n}": {("inconclusive", "False")} for n in (2, 3, 4)},
        "n5": {("better", "True"), ("worse", "True")},
    }
    rows = {(row["name"], row["scorer"]): row for row in csv.DictReader(io.StringIO(client.get("/runs.csv").text))}
    assert (rows["n1", "given"]["verdict"], rows["n1", "given"]["corrected_for"]) == ("inconclusive", "10")
    shown: dict[str, set[str]] = {}
    for address in ("/", "/?sort=name", "/?tag=odd", "/?q=n1", "/?q=n1&column=given"):
        while address:
            page = client.get(address)
            for row in page.text.split("<tr ")[2:]:
                for text in changes(replace(page, body=row.encode())):
                    shown.setdefault(names(replace(page, body=row.encode()))[0], set()).add(text)
            address = next((link for link in page.links("before=") if "rel" not in link), "")
    # The same on every page. Only the last run has marks, which differ by scorer.
    assert {name: len(of) for name, of in shown.items()} == {**{f"n{n}": 1 for n in range(1, 5)}, "n5": 2}
    assert not any("▲" in text or "▼" in text for name, of in shown.items() if name != "n5" for text in of)


def test_until_all_runs_are_compared_corrected_p_values_are_upper_limits() -> None:
    random = Random(3)

    def known(p_values: Sequence[float], size: int) -> dict[str, Differences]:
        of = [Difference(0.1, 0.0, 0.2, p, p, 20, "better" if p <= 0.05 else "inconclusive") for p in p_values]
        return {f"{run}": Differences(dict(zip("xy", of[2 * run :], strict=False))) for run in range(size)}

    for _ in range(300):
        p_values = [random.random() ** 4 for _ in range(random.randint(2, 12))]
        runs = known(p_values, len(p_values) // 2)
        whole, first = over_runs(runs), random.randint(1, len(runs))
        part = over_runs(dict([*runs.items()][:first]), [2] * (len(runs) - first))
        assert part.comparisons == whole.comparisons == 2 * len(runs)
        assert (part.missing, part.runs) == (len(runs) - first, whole.runs)
        for run in part.known:
            soon, final = (each.differences(run) for each in (part, whole))
            assert soon is not None
            assert final is not None
            for now, then in zip(soon.of.values(), final.of.values(), strict=True):
                assert (now.adjusted_p_runs or 0) >= (then.adjusted_p_runs or 0) >= now.p
                assert now.verdict == "inconclusive" or then.verdict == "better"


def test_a_difference_is_computed_once_and_again_if_a_run_or_the_pin_changes(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (evaluate(samples_of(a), [Given()], ledger=url, name=n) for n, a in (("a", LOW), ("b", HIGH)))
    pinned(url, first)
    made: list[tuple[str, str]] = []

    def counted(a: Run, b: Run, **more: Any) -> Any:
        made.append((a.id, b.id))
        return compare(a, b, **more)

    monkeypatch.setattr(comparison_build, "compare", counted)
    for _ in range(2):
        for _ in range(2):
            assert changes(client_of(url).get("/"))[0].startswith("▲")
    assert made == [(first.id, second.id)]
    pinned(url, second)
    assert changes(client_of(url).get("/"))[0].startswith("▼")
    assert made[1:] == [(second.id, first.id)]
    comparison_file(Path(url).parent, [second.id, first.id]).write_bytes(b"damaged" * 1000)
    assert changes(client_of(url).get("/"))[0].startswith("▼")
    assert len(made) == 3


def test_the_list_reads_what_the_comparison_stored(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (evaluate(samples_of(a), [Given()], ledger=url, name=n) for n, a in (("a", LOW), ("b", HIGH)))
    address = compare_address([first.id, second.id])
    assert client_of(url).get(address).status == 200
    pinned(url, first)
    monkeypatch.delattr(comparison_build, "compare")
    client = client_of(url)
    assert changes(client.get("/"))[0].startswith("▲")
    assert client.get(address).status == 200


def test_a_run_that_has_changed_is_compared_again(url: str, tmp_path: Path) -> None:
    middle = evaluate(samples_of(["0.5"] * 18), [Given()], ledger=url, name="a")
    pinned(url, middle)
    high, low = run_of(HIGH), run_of(LOW)
    address = compare_address([middle.id, "one"])
    for client in (client_of(url, tmp_path / "results"), client_of(url, tmp_path / "results")):
        write_run(replace(run_of(HIGH, [Harm()]), id="one"), tmp_path / "results")
        assert "not comparable" in client.get("/").words
        assert "Not compared" in client.get(address).words
        for run, mark, change in ((high, "▲", "+0.325"), (low, "▼", "-0.325")):
            write_run(replace(run, id="one"), tmp_path / "results")
            assert change in client.get(address).words
            assert changes(client.get("/"))[0].startswith(mark)


def test_a_baseline_that_cant_be_read_hides_no_run(url: str) -> None:
    first, _ = (evaluate(samples_of(a), [Given()], ledger=url, name=n) for n, a in (("a", LOW), ("b", HIGH)))
    pinned(url, first)
    with closing(sqlite3.connect(url)) as connection, connection:
        connection.execute("UPDATE records SET body = 'damaged' WHERE run = ?", (first.id,))
    page = client_of(url).get("/")
    assert (page.status, names(page), changes(page)) == (200, ["b", "a"], [])
    assert "not comparable: " in page.words


def test_differences_are_computed_in_the_background_with_progress(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [evaluate(samples_of(LOW if n else HIGH), [Given()], ledger=url, name=f"n{n}") for n in range(3)]
    pinned(url, runs[0])
    monkeypatch.setattr(jobs, "PATIENCE", 0.0)
    go_on = threading.Event()

    def slow(a: Run, b: Run, **more: Any) -> Any:
        assert go_on.wait(30)
        return compare(a, b, **more)

    monkeypatch.setattr(comparison_build, "compare", slow)
    client = client_of(url)
    page = client.get("/")
    assert (page.status, page.headers["refresh"], changes(page)) == (200, "2", [])
    assert re.search(r"Comparing with the baseline: 0 of 2 runs", page.words)
    go_on.set()
    until(lambda: len(changes(client.get("/"))) == 2)
    assert "refresh" not in client.get("/").headers


def test_what_cant_be_compared_says_why(url: str) -> None:
    base = evaluate([Sample(id="x", input="?", output="1")] * 1, [Given()], ledger=url, name="a")
    evaluate(samples_of(LOW), [Given()], ledger=url, name="b")
    pinned(url, base)
    page = client_of(url).get("/")
    assert "not comparable: no sample was scored in both runs" in page.words
    assert changes(page) == []
    with Ledger(url) as ledger:
        pin(ledger, base.dataset_name, "no such run")
    assert "There is no baseline to compare with: the pinned run is gone" in client_of(url).get("/").words


def test_differences_that_cant_be_stored_are_shown(url: str) -> None:
    base, other = (evaluate(samples_of(a), [Given()], ledger=url, name=n) for n, a in (("a", LOW), ("b", HIGH)))
    pinned(url, base)
    client = client_of(url)
    comparison_file(Path(url).parent, [base.id, other.id]).mkdir(parents=True)
    page = client.get("/")
    assert (page.status, names(page)) == (200, ["b", "a"])
    assert changes(page)[0].startswith("▲")


def test_runs_are_filtered_by_what_was_run(url: str) -> None:
    def target(input: str) -> str:
        return "1"

    evaluate(samples_of(LOW), [Given()], ledger=url, name="a", tags=["nightly"])
    evaluate(samples_of(LOW), [Given(), Harm()], ledger=url, name="b", tags=["pr", "nightly"])
    evaluate([Sample(id="q", input="?")], [Given()], target=target, ledger=url, name="c")
    client = client_of(url)
    identity = client.get("/runs.json").json[0]["target"]["identity"]
    for query, expected in (
        ("tag=nightly", ["b", "a"]),
        ("tag=pr", ["b"]),
        ("scorer=harm", ["b"]),
        (f"target={identity}", ["c"]),
        ("state=complete", ["c", "b", "a"]),
        ("state=running", []),
        ("tag=nightly&sort=started", ["a", "b"]),
        ("sort=name", ["a", "b", "c"]),
        ("sort=-name", ["c", "b", "a"]),
        ("dataset=none", []),
    ):
        assert names(client.get(f"/?{query}")) == expected, query
        assert {run["name"] for run in client.get(f"/runs.json?{query}").json} == set(expected)
    page = client.get("/?tag=pr")
    assert re.search(r'<option value="pr" selected>pr \(1\)</option>', page.text)
    assert client.get("/?state=odd").status == client.get("/?sort=odd").status == 400


def test_a_list_of_runs_follows_the_ledger(url: str) -> None:
    shelf = Shelf(url)

    def check(states: list[str]) -> None:
        listing, plain = shelf.listing(), Shelf(url).cards()
        assert [(card.id, card.state) for card in listing.cards] == [(card.id, card.state) for card in plain]
        assert [card.started for card in plain] == sorted((card.started for card in plain), reverse=True)
        assert listing.counts["state"] == Counter(states)
        assert listing.counts["scorer"] == Counter(title for card in plain for title in card.by_title)
        assert sum(map(len, listing.by_dataset.values())) == len(plain)

    runs = [evaluate(samples_of(["1", "0"]), [Given()], ledger=url, tags=[f"{n}"]).id for n in range(3)]
    check(["complete"] * 3)
    unfinished(url, runs[1], running=False)
    check(["complete", "unfinished", "complete"])
    with Ledger(url) as ledger:
        prune(ledger, unfinished=True, delete=True)
    check(["complete"] * 2)
    evaluate(samples_of(["1"]), [Given()], ledger=url)
    check(["complete"] * 3)


def test_the_order_holds_over_all_pages(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.view.pages.runs.RUNS_PER_PAGE", 2)
    for number, answer in enumerate(("0.2", "0.9", "0.5", "0.7", "skip")):
        evaluate(samples_of([answer] * 3), [Given()], ledger=url, name=f"{number}")
    client, address, found = client_of(url), "/?sort=score:given", list[str]()
    while address:
        page = client.get(address)
        found += names(page)
        address = next((link for link in page.links("before=") if "rel" not in link), "")
    assert found == ["1", "3", "2", "0", "4"]


def test_many_scorers_are_chosen_from(url: str) -> None:
    def named(number: int) -> Any:
        return type(f"S{number}", (Given,), {"name": f"s{number:02}", "__doc__": "One of many."})()

    evaluate(samples_of(["1", "0.5", "skip"]), [*map(named, range(20))], ledger=url, name="a")
    client = client_of(url)
    page = client.get("/")
    assert re.findall(r'data-label="(s\d\d)', page.text) == [f"s{n:02}" for n in range(6)]
    assert "6 of 20 scorers are shown" in page.words
    assert "14 skipped of scorers that aren&#39;t shown" in page.text
    assert 'class="spread"' not in page.text  # the means of many scorers have no plots, so that they fit
    page = client.get("/?column=s19&column=s03")
    assert page.text.count('class="spread"') == 2
    assert re.findall(r'data-label="(s\d\d)', page.text) == ["s03", "s19"]


def test_a_query_is_the_same_in_an_address() -> None:
    query = RunsQuery(q="a b", tag="x", sort="-score:given", column=("b", "a"), state="ended")
    assert RunsQuery.of(query.pairs()) == query
    assert RunsQuery().pairs() == []
    with pytest.raises(ConfigError) as caught:
        RunsQuery.of([("q", "x" * 3000)])
    assert caught.value.to_dict()["field"] == "q"


def test_the_pages_above_all_others_lead_to_each_other(url: str) -> None:
    evaluate(samples_of(["1"]), [Given()], ledger=url)
    client, tops = client_of(url), ["/", "/datasets", "/experiments", "/scorers", "/judges"]
    for address in (*tops, "/live"):
        page = client.get(address)
        nav = page.text.partition('class="sections"')[2].partition("</span>")[0]
        # Live scores have a place among them only if there are some.
        assert re.findall('href="([^"]*)"', nav) == [*tops, *(["/live"] if address == "/live" else [])]
        assert re.findall('href="([^"]*)" aria-current="page"', nav) == [address]
