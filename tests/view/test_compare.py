"""The page that compares runs: what it says is what `compare` says, and every sample has its row."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import Run, Sample, Score, Scorer, Skipped, compare, evaluate, write_run
from evalstone._core import packed_texts
from evalstone.errors import ConfigError
from evalstone.ledger.base import INDEXES, comparison_file
from evalstone.ledger.labels import pin
from evalstone.ledger.maintenance import prune
from evalstone.ledger.store import Ledger
from evalstone.results.compare import ScorerComparison, compare_slices
from evalstone.results.views.comparison import slices_text
from evalstone.stats.comparison import PairedComparison
from evalstone.view.addresses import compare_address, compared_address, run_address, sample_address
from evalstone.view.indexing import column_store, comparison_build, comparison_scores, jobs
from evalstone.view.indexing import comparison as stored
from evalstone.view.indexing.comparison import StoredComparison
from evalstone.view.shelf import Card, Shelf
from tests.runs import Given, Harm, samples_of
from tests.view.conftest import Reply, client_of

BEFORE = ["0.5", "skip", "0.25", "1", "fail", "0.75"]
AFTER = ["1", "0.5", "0", "1", "0.5", "0.75"]


def saved(url: str, *answers: Sequence[object], scorers: Any = None, **more: Any) -> list[Run]:
    """Runs in a ledger."""
    scorers = scorers or [Given(), Harm()]
    return [
        evaluate(samples_of(of, **more), scorers, ledger=url, name=name)
        for of, name in zip(answers, ("before", "after", "third", "fourth"), strict=False)
    ]


def address(runs: Sequence[Run], query: str = "", suffix: str = "") -> str:
    return compare_address([run.id for run in runs], suffix=suffix) + (f"&{query}" if query else "")


def changes(line: ScorerComparison) -> tuple[int, int]:
    """How many samples are worse and better."""
    assert isinstance(line.result, PairedComparison)
    return line.result.losses, line.result.wins


def limits(line: ScorerComparison) -> str:
    """The ends of the interval of the difference."""
    return f"{line.result.difference.low:+.3f} to {line.result.difference.high:+.3f}"


def names(reply: Reply) -> list[str]:
    """The samples in the list, in its order."""
    assert reply.status == 200, reply.words
    listed = reply.text.partition('class="list sides')[2]
    return re.findall(r'<th role="rowheader" scope="row"><a class="text" dir="auto" href="[^"]*">([^<]*)</a>', listed)


class Again(Given):
    """The same score under another name."""

    name = "again"


def test_what_is_worse_is_regressed_and_what_is_better_is_fixed(url: str) -> None:
    runs = saved(url, ["0.5", "0.5", "0.5", "0.5"], ["1", "0.25", "0", "0.5"], scorers=[Given(), Again()])
    client = client_of(url)
    for scorer in ("", "&scorer=again"):
        assert names(client.get(address(runs, f"show=regressed{scorer}"))) == ["s3", "s2"]
        assert names(client.get(address(runs, f"show=fixed{scorer}"))) == ["s1"]
    for scorers in ([Harm()], [Harm(), type("More", (Harm,), {"name": "more"})()]):
        worse = saved(url, ["0.5", "0.5"], ["1", "0.25"], scorers=scorers)
        assert names(client.get(address(worse, "show=regressed"))) == ["s1"]
        assert names(client.get(address(worse, "show=fixed"))) == ["s2"]


def test_the_head_says_what_compare_says(url: str) -> None:
    runs = saved(url, BEFORE, AFTER)
    reply = client_of(url).get(address(runs))
    comparison = compare(*runs)
    line = comparison["given"]
    interval = line.result.difference
    assert changes(line) == (1, 1)
    assert (
        f"given ↑ n = 4 1 1 {line.result.mean_a:.3f} {line.result.mean_b:.3f} {interval.estimate:+.3f}" in reply.words
    )
    assert f"{interval.low:+.3f} to {interval.high:+.3f} {line.adjusted_p_value:.3f}" in reply.words
    assert "harm ↓ n = 4 1 1" in reply.words
    assert "no significant difference" in reply.words
    regressed = [link for link in reply.links("show=regressed") if "scorer=given" in link]
    assert names(client_of(url).get(regressed[0])) == ["s3"]
    data = client_of(url).get(address(runs, suffix=".json")).json
    assert data["comparison"] == comparison.to_dict()


def test_chips_count_and_list_what_changed(url: str) -> None:
    runs = saved(url, BEFORE, AFTER)
    client = client_of(url)
    expected = {
        "all": ["s1", "s3", "s4", "s6", "s2", "s5"],
        "changed": ["s1", "s3"],
        "different": ["s1", "s3", "s2", "s5"],
        "regressed": ["s1", "s3"],
        "fixed": ["s1", "s3"],
        "failed": ["s5"],
        "missing": ["s2", "s5"],
    }
    whole = client.get(address(runs)).words
    for (show, found), chip in zip(
        expected.items(),
        ("all", "score changed", "answers differ", "regressed", "fixed", "failed", "missing in one"),
        strict=True,
    ):
        assert names(client.get(address(runs, f"show={show}"))) == found
        assert f"{chip} {len(found)}" in whole
    # With a scorer, what is better for it and worse for the other one is one of both.
    for show, found in {"regressed": ["s3"], "fixed": ["s1"]}.items():
        reply = client.get(address(runs, f"show={show}&scorer=given"))
        assert names(reply) == found
        assert f"{show} 1" in reply.words
    assert names(client.get(address(runs, "scorer=given&sort=worse"))) == ["s3", "s4", "s6", "s1", "s2", "s5"]
    assert names(client.get(address(runs, "scorer=given&sort=better"))) == ["s1", "s4", "s6", "s3", "s2", "s5"]
    assert names(client.get(address(runs, "sort=order"))) == ["s1", "s2", "s3", "s4", "s5", "s6"]


def test_filters_are_cleared_by_a_link_that_is_there_with_filters_alone(url: str) -> None:
    runs, client = saved(url, BEFORE, AFTER), client_of(url)
    assert "Clear the filters" not in client.get(address(runs)).text
    reply = client.get(address(runs, "show=fixed&q=much&by=x&sort=id"))
    [link] = re.findall(r'<a href="([^"]*)">Clear the filters', reply.text)
    assert html.unescape(link) == address(runs, "sort=id&by=x") + "#samples"


def test_a_row_has_both_answers_their_difference_scores_and_reasons(url: str) -> None:
    class Long(Scorer):
        """The length of the answer."""

        name = "long"

        def score(self, *, output: str) -> Score | Skipped:
            return Score(len(output) / 100, reason=f"{len(output)} characters") if output else Skipped("empty")

    texts = ["It opens at nine on Monday.", "It opens at ten on Monday."]
    runs = saved(url, [texts[0], "<b>same</b>"], [texts[1], "<b>same</b>"], scorers=[Long()])
    text = client_of(url).get(address(runs)).text
    assert 'It opens at <del><span class="aloud">[removed: </span>nine<span class="aloud">]</span></del> on Mon' in text
    assert 'It opens at <ins><span class="aloud">[added: </span>ten<span class="aloud">]</span></ins> on Mon' in text
    assert re.search(r'long <b class="">0.27</b></li>', text)
    assert re.search(r'long <b class="">0.26</b> <b class="bad">▼ -0.01</b></li>', text)
    assert '<dt>long</dt><dd class="text" dir="auto">27 characters</dd>' in text
    assert text.count("&lt;b&gt;same&lt;/b&gt;") == 2
    assert "The same answer." in text
    assert f'href="{sample_address(runs[1].id, "s1")}?comparison=' in text


def sides(reply: Reply, title: str) -> list[str]:
    """What each run has in a row of the page of a sample, in words."""
    assert reply.status == 200, reply.words
    rows = re.findall(r"<tr role=\"row\">.*?</tr>", reply.text, re.DOTALL)
    [row] = [row for row in rows if re.search(rf'scope="row"><span class="text" dir="auto">{title}\b', row)]
    found = re.findall(r"<td .*?</td>", row, re.DOTALL)
    return [" ".join(html.unescape(re.sub("<[^>]*>", " ", cell)).split()) for cell in found]


def test_a_sample_has_its_texts_scores_reasons_and_judge_calls_in_each_run(url: str) -> None:
    passages = ["The office opens at nine on Monday.", "It is closed on Sunday."]
    answers = ["The office opens at nine on Monday.", "The office opens at ten on Monday."]
    runs = [
        evaluate(
            [
                Sample(id="s/1?", input="When?", output=answer, context=passages, metadata={"prompt": f"p{at}"}),
                Sample(id="s2", input="Who?", output="Nobody.", context=passages),
            ],
            ["faithfulness", "json_valid"] if at else ["faithfulness"],
            judge="lexical",
            ledger=url,
            name=f"n{at}",
        )
        for at, answer in enumerate(answers)
    ]
    client = client_of(url)
    [link, _] = [one for one in client.get(address(runs, "sort=id")).links("^/compare/samples/") if "sort=id" in one]
    reply = client.get(link)
    assert link == compared_address("s/1?", [run.id for run in runs], [("sort", "id")])
    assert sides(reply, "Answer") == [
        "The office opens at [removed: nine ] on Monday.",
        "The office opens at [added: ten ] on Monday.",
    ]
    assert [text.startswith(score) for text, score in zip(sides(reply, "faithfulness"), ("1", "0 ▼ -1"), strict=True)]
    first, second = sides(reply, "faithfulness")
    for cell, run in ((first, runs[0]), (second, runs[1])):
        [record] = [
            each
            for each in run.records
            if each.sample_id == "s/1?" and each.signature in run["faithfulness"].info.signature
        ]
        assert record.outcome.reason.split(":")[0].split(";")[0] in cell
        assert cell.count("Judge calls") == 1
        assert "Input: " in cell
    assert sides(reply, "Claims")[0].count("supported") == 1
    assert sides(reply, "json_valid")[0] == ""
    assert sides(reply, "json_valid")[1].startswith("0 ")
    assert sides(reply, "Metadata") == ["prompt p0", "prompt p1"]
    shared = reply.text.partition("The same in all runs")[2].partition("</section>")[0]
    assert all(shared.count(html.escape(text)) == 1 for text in ("When?", *passages))
    [data_link] = reply.links("json")
    data = client.get(data_link).json
    for letter, run in zip("AB", runs, strict=True):
        own = client.get(sample_address(run.id, "s/1?") + ".json").json
        assert own.items() <= data["runs"][letter].items()
        assert own["asked"]
    assert data["runs"]["B"]["scores"]["faithfulness"] == {"outcome": "score", "value": 0.0, "improvement": -1.0}
    # The same sample in one run leads back.
    own = client.get(next(iter(reply.links("^/runs/.*comparison="))))
    assert link in own.links("^/compare/samples/")


def test_the_page_of_a_compared_sample_walks_what_changed_or_what_the_list_has(url: str) -> None:
    runs = saved(url, [*BEFORE, "0.9", "0.1"], [*AFTER, "0.7", "0.2"])
    client = client_of(url)

    def walk(query: str, relation: str) -> list[str]:
        found = names(client.get(address(runs, query)))
        link = compared_address(found[0 if relation == "next" else -1], [run.id for run in runs])
        link += f"&{query}" if query else ""
        seen: list[str] = []
        while link:
            reply = client.get(link)
            seen.append(html.unescape(re.findall("<h1[^>]*>([^<]*)</h1>", reply.text)[0]))
            link = next((html.unescape(one) for one in re.findall(rf'href="([^"]*)" rel="{relation}"', reply.text)), "")
        return seen

    for query in ("show=changed", "show=missing&sort=id", "sort=worse&show=fixed&scorer=given", "q=0.5&sort=order"):
        changed = query if "show" in query else f"{query}&show=changed"
        listed = names(client.get(address(runs, changed)))
        for relation, expected in (("next", listed), ("prev", listed[::-1])):
            seen = walk(query, relation)
            # Among all samples, those that changed are walked, from whichever one is open.
            assert [name for name in seen if name in listed] == expected, (query, relation)
            assert len(seen) == len(expected) + (seen[0] not in listed)
    page = client.get(compared_address("s4", [run.id for run in runs], [("show", "missing"), ("sort", "id")]))
    assert "Previous and next: missing in one, ID, A to Z" in page.words
    [permalink] = re.findall('href="([^"]*)">Permalink', page.text)
    assert html.unescape(permalink) == compared_address("s4", [run.id for run in runs])


@pytest.mark.slow
def test_the_page_of_a_compared_sample_has_up_to_16_runs_trials_and_samples_of_one_run_alone(url: str) -> None:
    runs = [evaluate(samples_of([f"0.{n}", "0.5"] + ["1"] * (n > 8)), [Given()], ledger=url) for n in range(16)]
    client = client_of(url)
    ids = [run.id for run in runs]
    reply = client.get(compared_address("s1", ids, [("anyway", "1")]))
    assert len(sides(reply, "Answer")) == len(sides(reply, "given")) == 16
    assert [float(text.split()[0]) for text in sides(reply, "given")] == [float(f"0.{n}") for n in range(16)]
    alone = client.get(compared_address("s3", ids, [("anyway", "1")]))
    assert sides(alone, "Answer")[:9] == ["The run doesn't have this sample."] * 9
    assert sides(alone, "given")[8:10] == ["", "1 says 1"]
    assert client.get(compared_address("s3", ids, [("anyway", "1")], ".json")).json["runs"]["A"] is None

    def answering(answers: list[str]) -> Any:
        left = iter(answers)

        def answer(input: str) -> str:
            return next(left)

        return answer

    sampled = [Sample(id="t", input="How much?")]
    trials = [
        evaluate(sampled, [Given()], target=answering(of), trials=2, ledger=url, concurrency=1).id
        for of in (["0", "1"], ["0.5", "0.25"])
    ]
    reply = client.get(compared_address("t", trials))
    assert reply.words.count("Trials:") == 2
    # The worst trial is shown where the run is worse, and the best where it is better.
    first, second = sides(reply, "Answer")  # which may begin with how long they took
    assert (first.split()[-1], second.split()[-1]) == ("1", "0.25")
    assert sides(reply, "given")[1].startswith(
        "0.375 ▼ -0.125 The mean of 2 trials. Below is the one that is shown: 0.25."
    )


def test_addresses_of_compared_samples_that_make_no_sense_say_so(url: str) -> None:
    runs = saved(url, ["0.5"], ["1"], scorers=[Given()])
    ids, client = [run.id for run in runs], client_of(url)
    assert client.get(compared_address("other", ids)).status == 404
    assert client.get(compared_address("s1", ids).replace("s1", "%ED%A0%80", 1)).status == 404
    assert "have no results of sample other" in client.get(compared_address("other", ids)).words
    assert client.get(compared_address("s1", ids, suffix=".csv")).status == 404
    assert client.get(compared_address("s1", ids[:1])).status == 400
    assert client.get(compared_address("s1", [*ids, "none"])).status == 404
    assert client.get(compared_address("s1", ids, [("scorer", "other")])).status == 400
    other = evaluate(samples_of(["1"]), [Harm()], ledger=url)
    refused = client.get(compared_address("s1", [ids[0], other.id]))
    assert (refused.status, "no scorer in common" in refused.words) == (400, True)


@pytest.mark.slow
def test_pages_go_through_all_samples_once_in_both_directions(url: str) -> None:
    before, after = [f"0.{number:02}" for number in range(60)], [f"0.{number * 7 % 60:02}" for number in range(60)]
    runs = saved(url, before, after)
    client = client_of(url)
    for order in ("change", "worse", "better", "order", "id"):
        seen: list[str] = []
        pages: list[list[str]] = []
        link = last = address(runs, f"sort={order}&scorer=harm")
        while link:
            last = link
            reply = client.get(link)
            pages.append(names(reply))
            seen += pages[-1]
            following = [one for one in reply.links("after=") if "compare?" in one]
            link = following[0] if following else ""
        assert sorted(seen) == sorted(f"s{number}" for number in range(1, 61)), order
        back = client.get(last).links("before=")
        assert names(client.get(back[0])) == pages[-2], order
    assert client.get(address(runs, "after=nonsense")).status == 400


def test_samples_are_searched_in_every_run_and_filtered_by_slice(url: str) -> None:
    metadata = [{"topic": "maps" if number % 2 else "post"} for number in range(6)]
    runs = saved(url, BEFORE, AFTER, metadata=metadata)
    client = client_of(url)
    assert names(client.get(address(runs, "q=fail"))) == ["s5"]
    assert names(client.get(address(runs, "q=0.5&sort=order"))) == ["s1", "s2", "s5"]
    assert names(client.get(address(runs, "q=0.5"))) == ["s1", "s2", "s5"]
    assert names(client.get(address(runs, "field=topic%3Dmaps&sort=order"))) == ["s2", "s4", "s6"]
    assert names(client.get(address(runs, "field=topic%3Dpost&q=0.5&show=changed"))) == ["s1"]
    assert client.get(address(runs, "field=other%3D1")).status == 400
    assert client.get(address(runs, "scorer=other")).status == 400
    assert client.get(address(runs, "run=A")).status == 400
    assert client.get(address(runs, "sort=other")).status == 400


def test_samples_in_another_order_are_found_by_the_words_of_any_run(url: str) -> None:
    before, after = (
        [Sample(id=f"s{n}", input="How much?", output=f"0.{n}", reference=text) for n in numbers]
        for numbers, text in ((range(1, 6), "old"), ((5, 3, 9, 1, 2, 4), "new"))
    )
    runs = [evaluate(samples, [Given()], ledger=url) for samples in (before, after)]
    client = client_of(url)

    def found(query: str) -> list[str]:
        return names(client.get(address(runs, f"anyway=1&sort=order&{query}")))

    assert found("q=0.3") == ["s3"]
    assert found("q=0.9") == ["s9"]
    assert found("q=new") == ["s1", "s2", "s3", "s4", "s5", "s9"]
    assert found("q=old") == ["s1", "s2", "s3", "s4", "s5"]


def test_slices_are_those_of_compare(url: str) -> None:
    metadata = [{"topic": "maps" if number % 2 else "post"} for number in range(12)]
    runs = saved(url, ["0.5"] * 12, ["1", "0.25"] * 6, metadata=metadata)
    reply = client_of(url).get(address(runs, "by=topic"))
    sliced = compare(*runs, slice_by="topic").slices
    assert [(line.title, line.key, changes(line)) for line in sliced][:2] == [
        ("given", "maps", (6, 0)),
        ("given", "post", (0, 6)),
    ]
    for line in sliced[:2]:
        assert f"{line.result.difference.estimate:+.3f}" in reply.words
    assert "maps given ↑ · n = 6 6 0" in reply.words
    link = next(link for link in reply.links("field=topic") if "show=regressed" in link and "scorer=given" in link)
    assert names(client_of(url).get(link)) == ["s2", "s4", "s6", "s8", "s10", "s12"]


TOPICS: list[Any] = [
    "maps", " two\nlines ", True, "TRUE", 1.0, 1, "1.0", None, {"in": "x"}, "", "x" * 150, "\u00fc\u200b"
]  # fmt: skip
"""Values of the metadata such as people write them: slices of 5, 10 and 15 of 60 samples."""


def compared_runs(url: str, kind: str) -> list[Run]:
    """Runs of 60 samples with topics. kind: what is special about them."""
    metadata: list[dict[str, Any]] = [{"topic": TOPICS[n // 5], "in": {"depth": n % 2}} for n in range(60)]
    for n, entries in enumerate(metadata):
        entries |= {"group": f"g{n // 2}"} if kind == "groups" else {"weight": 1 + n % 3} if kind == "weights" else {}
    values = ("0.5", "skip", "0.25", "1", "fail", "0.75", "0.125")
    of_runs = [samples_of([values[n * step % 7] for n in range(60)], metadata=metadata) for step in (1, 3, 5)]
    if kind != "three":
        del of_runs[2]
    for number, of in enumerate(of_runs):
        for n, sample in enumerate(of):
            if kind == "without IDs":
                asked = f"How much is {n}?"
                of[n] = replace(sample, id=Sample(input=asked, output=sample.output).id, input=asked)
            elif kind == "mismatch":
                of[n] = replace(sample, input=f"How much, {number}?")
    if kind != "trials":
        return [evaluate(of, [Given(), Harm()], ledger=url) for of in of_runs]

    def answering(of: Sequence[Sample]) -> Any:
        left = iter([sample.output for sample in (*of, *of[::-1])])

        def answer(input: str) -> str | None:
            return next(left)

        return answer

    asked = [replace(sample, output=None) for sample in of_runs[0]]
    return [
        evaluate(asked, [Given(), Harm()], target=answering(of), trials=2, ledger=url, concurrency=1) for of in of_runs
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "groups", "weights", "trials", "without IDs", "three", "mismatch"])
def test_slices_of_a_stored_comparison_are_those_of_compare_and_no_run_is_read_for_them(
    url: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    runs = compared_runs(url, kind)
    client, query = client_of(url), "anyway=1" if kind == "mismatch" else ""
    assert client.get(address(runs, query)).status == 200

    def refuse(*_: object) -> Run:
        raise AssertionError("a run is read")

    monkeypatch.setattr(Shelf, "read", refuse)
    for by in ("topic", "in.depth"):
        reply = client.get(address(runs, f"{query}&by={by}"))
        assert reply.status == 200, reply.words
        expected = compare(*runs, slice_by=by, allow_mismatch=bool(query))
        with StoredComparison(comparison_file(Path(url).parent, [run.id for run in runs], query and "x")) as whole:
            keys = whole.keys(by)
            assert keys is not None
            lines, notes = compare_slices(whole.pairs, by, keys)
        assert [line.to_dict() for line in lines] == [line.to_dict() for line in expected.slices]
        assert len(lines) >= 4
        assert [*notes] == [note for note in expected.notes if note.kind == "slices_too_small"]
        words = html.unescape(reply.words)
        assert all(limits(line) in words for line in lines)
        assert slices_text(expected.slice_correction_text) in words


def test_slices_by_an_entry_that_pages_do_not_offer_are_those_of_compare(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_scores, "MOST_KEYS", 3)
    metadata = [{"many": n // 5, "one": "same"} for n in range(20)]
    runs = saved(url, ["0.5"] * 20, ["1"] * 20, scorers=[Given()], metadata=metadata)
    client = client_of(url)
    assert client.get(address(runs)).status == 200
    with StoredComparison(comparison_file(Path(url).parent, [run.id for run in runs])) as whole:
        assert [whole.keys(by) for by in ("many", "one", "none")] == [None] * 3
    for by in ("many", "one"):
        words = client.get(address(runs, f"by={by}")).words
        assert [
            f"{line.key} given ↑ · n = {line.result.n}" in words for line in compare(*runs, slice_by=by).slices
        ] == ([True] * (4 if by == "many" else 1))
    with pytest.raises(ConfigError) as refused:
        compare(*runs, slice_by="none")
    assert str(refused.value) in html.unescape(client.get(address(runs, "by=none")).words)


def test_runs_are_compared_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = [{"topic": "maps" if number % 2 else "post"} for number in range(12)]
    runs = saved(url, BEFORE * 2, AFTER * 2, scorers=[Given(), Harm(), Again()], metadata=metadata)
    made: list[str] = []

    def counted(*of: Run, **more: Any) -> Any:
        made.append(of[1].id)
        return compare(*of, **more)

    monkeypatch.setattr(comparison_build, "compare", counted)
    client = client_of(url)
    reads, read = list[str](), Shelf.read

    def noted(shelf: Shelf, card: Card) -> Run:
        reads.append(card.id)
        return read(shelf, card)

    monkeypatch.setattr(Shelf, "read", noted)
    for run in runs:
        client.get(run_address(run.id))
    reads.clear()
    # What is compared by slice is compared as a whole too.
    pages = client.get(address(runs, "by=topic")), client.get(address(runs))
    assert (made, len(reads)) == ([runs[1].id], 2)
    expected = {suffix: client.get(address(runs, suffix=suffix)).body for suffix in (".json", ".csv")}
    assert json.loads(expected[".json"])["comparison"] == compare(*runs).to_dict()
    # What the list compared gets its samples, and isn't compared again.
    with Ledger(url) as ledger:
        pin(ledger, runs[0].dataset_name, runs[0].id)
    file = comparison_file(Path(url).parent, [run.id for run in runs])
    file.unlink()
    client = client_of(url)
    client.get("/")
    assert made[1:] == [runs[1].id]
    head = file.read_bytes()
    assert client.get(address(runs)).body == pages[1].body
    assert file.read_bytes() != head
    assert {suffix: client.get(address(runs, suffix=suffix)).body for suffix in expected} == expected
    assert made[2:] == []


def test_large_runs_are_compared_as_small_ones(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = saved(url, BEFORE * 3, AFTER * 3, [*AFTER, "1", *BEFORE])
    queries = (
        "",
        "show=regressed",
        "show=missing&run=C",
        "sort=worse&scorer=harm",
        "sort=id",
        "q=0.5",
        "q=s1&show=failed",
    )
    addresses = [address(runs, query, suffix) for query in queries for suffix in ("", ".json")]
    expected = [client_of(url).get(each).body for each in addresses]
    shutil.rmtree(Path(url).parent / INDEXES)
    monkeypatch.setattr(packed_texts, "_AT_ONCE", 2)
    monkeypatch.setattr(column_store, "CHUNK", 5)
    monkeypatch.setattr(comparison_build, "CHUNK", 5)
    assert [client_of(url).get(each).body for each in addresses] == expected


def test_runs_that_are_not_comparable_say_why_and_are_compared_all_the_same_on_demand(url: str) -> None:
    first = evaluate(samples_of(["1", "0"], question="How much?"), [Given()], ledger=url)
    second = evaluate(samples_of(["0", "0"], question="How many?"), [Given()], ledger=url)
    client = client_of(url)
    reply = client.get(address([first, second]))
    assert reply.status == 200
    assert "Not compared" in reply.words
    assert "2 of 2 samples" in reply.words
    assert names(reply) == []
    anyway = client.get(reply.links("anyway=1")[0])
    assert names(anyway) == ["s1", "s2"]
    assert "2 of 2 samples" in anyway.words
    refused = client.get(address([first, second], suffix=".json"))
    assert refused.status == 400
    other = evaluate(samples_of(["1"]), [Harm()], ledger=url)
    reply = client.get(address([first, other]))
    assert "no scorer in common" in reply.words
    assert reply.links("anyway") == []


def test_samples_without_ids_are_paired_as_compare_does(tmp_path: Path) -> None:
    runs = [
        evaluate([Sample(input=f"q{n}", output=answer) for n, answer in enumerate(of)], [Given()], ledger=None)
        for of in (["0.5", "1", "0"], ["0.25", "1", "0.5"])
    ]
    for number, run in enumerate(runs):
        write_run(run, tmp_path / str(number))
    reply = client_of(None, tmp_path).get(address(runs))
    assert len(names(reply)) == 3
    assert "regressed 1" in reply.words
    assert "fixed 1" in reply.words
    data = client_of(None, tmp_path).get(address(runs, suffix=".json")).json
    assert [each["runs"]["A"]["answer"] + each["runs"]["B"]["answer"] for each in data["samples"]] == [
        "00.5", "0.50.25", "11",
    ]  # fmt: skip


def test_trials_are_folded_and_compared_by_their_mean(url: str) -> None:
    def answering(answers: list[str]) -> Any:
        left = iter(answers)

        def answer(input: str) -> str:
            return next(left)

        return answer

    samples = [Sample(id=f"s{n}", input="How much?") for n in range(2)]
    runs = [
        evaluate(samples, [Given()], target=answering(of), trials=2, ledger=url, concurrency=1)
        for of in (["0", "1", "0.5", "0.5"], ["0.5", "1", "0.25", "0.5"])
    ]
    client = client_of(url)
    data = client.get(address(runs, suffix=".json")).json
    scores = {
        each["sample_id"]: [each["runs"][letter]["scores"]["given"]["value"] for letter in "AB"]
        for each in data["samples"]
    }
    line = compare(*runs)["given"]
    assert sorted(scores) == ["s0", "s1"]
    assert sum(before for before, _ in scores.values()) / 2 == pytest.approx(line.result.mean_a)
    assert sum(after for _, after in scores.values()) / 2 == pytest.approx(line.result.mean_b)
    reply = client.get(address(runs))
    assert f"regressed {changes(line)[0]}" in reply.words
    assert reply.words.count("Trials:") == 4
    assert names(client.get(address(runs, "q=0.25"))) == [min(scores, key=lambda name: scores[name][1])]


def test_more_than_two_runs_are_columns_and_compared_with_the_first(url: str) -> None:
    runs = saved(url, ["0.5", "1", "0"], ["1", "1", "0"], ["0.25", "1", "1"])
    client = client_of(url)
    reply = client.get(address(runs))
    assert "3 runs compared" in reply.words
    line = next(line for line in compare(*runs).scorers if line.b == "C")
    p = f"p {line.adjusted_p_value:.3f}, no significant difference"
    assert f"C · third 0.750 +0.250 ({limits(line)}) 1 regressed , 1 fixed , {p}" in reply.words
    assert names(reply) == ["s3", "s1", "s2"]
    assert names(client.get(address(runs, "run=B&show=changed"))) == ["s1"]
    assert names(client.get(address(runs, "run=C&scorer=given&show=regressed"))) == ["s1"]
    assert names(client.get(address(runs, "run=C&scorer=given&show=fixed"))) == ["s3"]
    assert address([runs[2], runs[0], runs[1]]) in reply.links("^/compare")
    assert address(runs[:2]) in reply.links("^/compare")
    letters = client.get(address(runs, suffix=".json")).json["comparison"]["runs"]
    assert [run["id"] for run in letters.values()] == [run.id for run in runs]


def test_samples_of_one_run_alone_have_a_row(tmp_path: Path) -> None:
    runs = [evaluate(samples_of(of), [Given()], ledger=None) for of in (["0.5"] * 6, ["0.5"] * 7)]
    for number, run in enumerate(runs):
        write_run(run, tmp_path / str(number))
    client = client_of(None, tmp_path)
    reply = client.get(address(runs, "anyway=1&show=missing"))
    assert names(reply) == ["s7"]
    assert "have this sample" in reply.words


def test_a_comparison_is_computed_once_and_again_when_a_run_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    compute = comparison_build.compare

    def counted(*runs: Run, **more: Any) -> Any:
        computed.append(len(runs))
        return compute(*runs, **more)

    monkeypatch.setattr(comparison_build, "compare", counted)
    runs = [evaluate(samples_of(of), [Given()], ledger=None) for of in (BEFORE, AFTER)]
    for number, run in enumerate(runs):
        write_run(run, tmp_path / "results" / str(number))
    client = client_of(str(tmp_path / "ledger.db"), tmp_path / "results")
    with Ledger(tmp_path / "ledger.db"):
        pass
    for query in ("", "show=failed", "sort=id", "q=0.5"):
        client.get(address(runs, query))
    client_of(str(tmp_path / "ledger.db"), tmp_path / "results").get(address(runs))
    assert computed == [2]
    write_run(replace(runs[1], name="again"), tmp_path / "results" / "1")
    assert "again" in client.get(address(runs)).words
    assert computed == [2, 2]
    file = next((tmp_path / INDEXES).glob("compare-*"))
    file.write_bytes(b"no database")
    assert names(client.get(address(runs)))
    assert computed == [2, 2, 2]


def test_a_page_says_how_far_a_comparison_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = saved(url, BEFORE, AFTER)
    client = client_of(url)
    with monkeypatch.context() as impatient:
        impatient.setattr(jobs, "PATIENCE", 0.0)
        reply = client.get(address(runs))
    assert (reply.status, reply.headers["refresh"]) == (202, "1")
    assert "before and after: this is done once." in reply.words
    assert len(names(client.get(address(runs)))) == 6


def test_a_comparison_is_deleted_with_its_runs(url: str) -> None:
    runs = saved(url, BEFORE, AFTER)
    client_of(url).get(address(runs))
    folder = Path(url).parent / INDEXES
    assert len([*folder.iterdir()]) == 3
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("UPDATE runs SET finished = NULL WHERE id = :run", {"run": runs[1].id})
    with Ledger(url) as ledger:
        prune(ledger, unfinished=True, delete=True)
    assert len([*folder.iterdir()]) == 1


def test_the_folder_of_what_pages_are_made_from_may_be_deleted_at_any_time(url: str) -> None:
    runs, client = saved(url, BEFORE, AFTER), client_of(url)
    client.get(address(runs))
    shutil.rmtree(Path(url).parent / INDEXES)
    assert client.get(address(runs)).status == 200
    assert (Path(url).parent / INDEXES).stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_what_turns_out_to_be_damaged_is_made_anew(url: str) -> None:
    runs, client = saved(url, *([f"0.{number}" for number in range(500)] for _ in range(2))), client_of(url)
    addresses = [address(runs), f"{run_address(runs[0].id)}?sort=id&q=much", sample_address(runs[0].id, "s400")]
    for damaged in range(3):
        assert [client.get(each).status for each in addresses] == [200, 200, 200]
        for file in (Path(url).parent / INDEXES).iterdir():
            body = bytearray(file.read_bytes())
            third = len(body) // 4
            body[third * damaged + 4096 : third * (damaged + 1)] = b"x" * (third - 4096)
            file.write_bytes(body)
        replies = [client.get(each) for each in addresses for _ in range(3)]
        assert {reply.status for reply in replies} <= {200, 503}
        assert all("Load the page again" in reply.words for reply in replies if reply.status == 503)


def test_a_score_that_has_not_changed_improves_by_zero_whichever_direction_is_better(url: str) -> None:
    runs = saved(url, ["0.5"], ["0.5"], scorers=[Given(), Harm()])
    (row,) = csv.DictReader(io.StringIO(client_of(url).get(address(runs, suffix=".csv")).text))
    assert (row["B given improvement"], row["B harm improvement"]) == ("0.0", "0.0")


def test_the_data_has_every_sample_with_whole_answers(url: str) -> None:
    long = "word " * 1000
    runs = saved(url, ["0.5", long.strip()], ["1", "0.5"], scorers=[Given(), Harm()])
    rows = [*csv.DictReader(io.StringIO(client_of(url).get(address(runs, suffix=".csv")).text))]
    assert [row["sample_id"] for row in rows] == ["s1", "s2"]
    assert (rows[0]["A given"], rows[0]["B given"], rows[0]["B given improvement"]) == ("0.5", "1.0", "0.5")
    assert rows[0]["B harm improvement"] == "-0.5"
    assert rows[1]["A answer"] == long.strip()
    assert (rows[1]["A given"], rows[1]["A given outcome"]) == ("", "failed")
    assert "left out" in client_of(url).get(address(runs)).text


def test_a_sample_of_megabytes_is_not_read_for_its_row(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.view.pages.compare_samples.MOST_BYTES", 10_000)
    runs = saved(url, ["word " * 9000, "0.5"], ["other " * 9000, "0.5"], scorers=[Given()])
    reply = client_of(url).get(address(runs, "show=different"))
    assert names(reply) == ["s1"]
    assert "The beginning of a very long sample." in reply.words
    assert len(reply.body) < 30_000


def test_runs_are_chosen_in_the_list_and_beside_a_run(url: str) -> None:
    runs = saved(url, BEFORE, AFTER, BEFORE)
    client = client_of(url)
    listed = client.get("/")
    assert listed.text.count('type="checkbox" form="compare" name="runs"') == 3
    ticked = client.get(f"/compare?baseline=usual&runs={runs[2].id}&runs={runs[0].id}")
    assert (ticked.status, ticked.headers["location"]) == (303, address([runs[0], runs[2]]))
    beside = client.get(run_address(runs[1].id)).links("^/compare")
    choice = client.get(beside[0])
    assert choice.links("^/compare") == [address([runs[2], runs[1]]), address([runs[0], runs[1]])]
    assert client.get("/compare").status == 400
    assert client.get("/compare?runs=gone," + runs[0].id).status == 404
    assert client.get("/compare.xml?runs=" + runs[0].id).status == 404


def test_runs_over_other_datasets_of_the_same_size_are_offered_below(url: str, tmp_path: Path) -> None:
    run, *_ = saved(url, BEFORE, AFTER)
    for name, answers in (("variant", AFTER), ("larger", [*AFTER, "1"])):
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps({"id": s.id, "output": s.output}) + "\n" for s in samples_of(answers)))
        evaluate(file, [Given()], ledger=url, name=name)
    choice = client_of(url).get(f"/compare?runs={run.id}")
    own, _, others = choice.words.partition(f"Other datasets with {len(BEFORE)} samples")
    assert "variant.jsonl" in others
    assert "variant" not in own
    assert "larger" not in choice.words
    assert len(choice.links("^/compare")) == 2


def test_tables_of_comparisons_have_all_numbers_of_changes(url: str) -> None:
    assert stored.PAGE == 25
    runs = saved(url, BEFORE, AFTER)
    client = client_of(url)
    client.get(address(runs))
    for show in ("changed", "different", "regressed", "fixed", "failed", "missing"):
        for scorer in ("", "given", "harm"):
            reply = client.get(address(runs, f"show={show}&scorer={scorer}"))
            status = re.search(r"(\d+) of 6 samples, largest", reply.words)
            assert status is not None
            assert int(status[1]) == len(names(reply)), (show, scorer)


def test_a_sample_of_a_comparison_leads_back_to_it_and_to_the_next_one_there(url: str) -> None:
    runs, client = saved(url, BEFORE, AFTER), client_of(url)
    listed = address(runs, "show=regressed&scorer=given&sort=id")
    assert names(client.get(listed)) == ["s3"]
    listed = address(runs, "show=different&sort=id")
    assert names(client.get(listed)) == ["s1", "s2", "s3", "s5"]
    opened = next(link for link in client.get(listed).links("/samples/s2") if runs[1].id in link.partition("?")[0])
    reply = client.get(opened)
    back = re.search('<a href="([^"]*)" rel="up">Comparison', reply.text)
    assert back is not None
    assert names(client.get(html.unescape(back[1]))) == ["s1", "s2", "s3", "s5"]
    steps = {kind: html.unescape(link) for link, kind in re.findall('<a href="([^"]*)" rel="(prev|next)">', reply.text)}
    assert [link.partition("?")[0] for link in steps.values()] == [
        f"/runs/{runs[1].id}/samples/{name}" for name in ("s1", "s3")
    ]
    reply = client.get(client.get(steps["next"]).links("/samples/s5")[0])
    assert ('rel="prev"' in reply.text, 'rel="next"' in reply.text) == (True, False)
    assert "In the comparison, ID, A to Z" in reply.words


@pytest.mark.parametrize(
    ("comparison", "status"),
    [("x", 400), ("runs=nothing,{b}", 404), ("runs={b}", 400), ("runs={a},{b}%26show=x", 400), ("%25FF=%25FF", 400)],
)
def test_a_sample_of_no_comparison_says_so(url: str, comparison: str, status: int) -> None:
    a, b = saved(url, BEFORE, AFTER)
    text = comparison.format(a=a.id, b=b.id)
    assert client_of(url).get(f"/runs/{b.id}/samples/s2?comparison={text}").status == status
