"""What is wrong with samples: groups of the same fault, where low answers are lost, and what is known of the judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evalstone import Sample, Score, Skipped, evaluate
from evalstone.questions.claims import ClaimVerdict
from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.saved_calibrations import calibrations_for, save_calibration
from evalstone.results.views.calibration import calibration_notes
from evalstone.scorers import Faithfulness
from evalstone.view.addresses import run_address, sample_address
from evalstone.view.indexing.groups import with_gaps
from tests.results.test_losses import ANSWERS, PAIR
from tests.runs import Given, samples_of
from tests.view.conftest import Reply, client_of


def keys(reply: Reply) -> list[str]:
    """The samples of a list, in its order."""
    return [link.partition("?")[0].rpartition("/")[2] for link in reply.links("/samples/")]


def groups(reply: Reply) -> list[tuple[str, str, str]]:
    """What is wrong, in how many samples, by which scorer."""
    table = reply.text.partition('class="list faults"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr role=\"row\">(.*?)</tr>", table, re.DOTALL)[1:]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [tuple(" ".join(re.sub("<[^>]*>", "", cell).split()) for cell in row) for row in cells]  # type: ignore[misc]


class Missing(Given):
    """Claims that are missing: those of the answer, between semicolons."""

    name = "missing"

    def score(self, *, output: str) -> Score | Skipped:
        if output.startswith("reply "):
            raise ValueError(f"{output} has no JSON: '{output * 3}'")
        if output.startswith("skip "):
            return Skipped(f"{output[5:]} of 7 claims are undecided")
        claims = [ClaimVerdict(claim, "not_mentioned") for claim in output.split(";")]
        return Score(
            0.5, f"0 of {len(claims)} claims", evidence={"reference": [*claims, ClaimVerdict("x", "supported")]}
        )


FAULTY = [
    "Ada was born in 1815.;Ada wrote.",
    "ada was born in  1815;Ada sang.",
    "Ada was born in 1816.",
    "reply 1",
    "reply 22",
    "skip 3",
    "skip 4",
    "skip 5",
]


def test_samples_with_the_same_fault_are_a_group_with_a_link_to_their_list(url: str) -> None:
    run = evaluate(samples_of(FAULTY), [Missing()], ledger=url)
    client = client_of(url)
    page = client.get(run_address(run.id))
    assert groups(page) == [
        ("… of … claims are undecided", "3", "missing skipped"),
        ("? not mentioned: Ada was born in 1815.", "2", "missing"),
        ("ValueError: reply … has no JSON: … (test_faults.py, line …)", "2", "missing failed"),
    ]
    found = [keys(client.get(address)) for address in page.links("reason=")]
    assert found == [["s6", "s7", "s8"], ["s1", "s2"], ["s4", "s5"]]
    current = client.get(page.links("reason=")[1]).text
    assert current.partition('class="list faults"')[2].partition("</table>")[0].count("aria-current") == 1


def test_a_reason_that_all_members_of_a_group_have_is_shown_as_it_is(url: str) -> None:
    run = evaluate(samples_of(["skip 3", "skip 3", "0"]), [Missing()], ledger=url)
    assert groups(client_of(url).get(run_address(run.id))) == [("3 of 7 claims are undecided", "2", "missing skipped")]


def test_perfect_scores_and_single_low_ones_are_no_group(url: str) -> None:
    run = evaluate(samples_of(["1", "1", "0.5"]), [Given()], ledger=url)
    assert "What is wrong" not in client_of(url).get(run_address(run.id)).words
    assert client_of(url).get(f"{run_address(run.id)}?reason=says+1").links("/samples/") == []


@pytest.mark.parametrize(
    ("reason", "gaps"),
    [
        ("HTTP 429 after 1,234.5 s", "HTTP … after … s"),
        ("no 'a b' in \"c\" or `d` or “e”", "no … in … or … or …"),
        ("the judge's reply isn't JSON", "the judge's reply isn't JSON"),
        ("v2 and x_1", "v… and x_…"),
    ],
)
def test_numbers_and_quoted_texts_are_what_differs(reason: str, gaps: str) -> None:
    assert with_gaps(reason) == gaps


def test_where_answers_are_lost_is_said_and_filtered_by(url: str) -> None:
    run = evaluate(
        [Sample(id=f"s{n}", input="?", output=answer) for n, answer in enumerate(ANSWERS)], list(PAIR), ledger=url
    )
    client = client_of(url)
    page = client.get(run_address(run.id))
    assert "Of 4 answers with factual_correctness below 0.5, 2 lack the passage" in page.words
    assert "lost in retrieval 2 lost in generation 1" in page.words
    for loss, expected in (("retrieval", ["s0", "s2"]), ("generation", ["s1"]), ("unknown", ["s6"])):
        assert sorted(keys(client.get(f"{run_address(run.id)}?loss={loss}"))) == expected
    assert client.get(f"{run_address(run.id)}?loss=elsewhere").status == 400
    assert [each["loss"] for each in client.get(f"{run_address(run.id)}.json?sort=order").json["samples"]][:2] == [
        "retrieval",
        "generation",
    ]
    sample = client.get(sample_address(run.id, "s1"))
    assert "generation the passages had what the answer needs" in sample.words
    assert "Loss" not in client.get(sample_address(run.id, "s4")).words


def test_slices_of_nested_metadata_and_groups_are_filters(url: str) -> None:
    metadata = [{"doc": {"lang": lang}, "group": group} for lang, group in (("de", "a"), ("en", "b"), ("de", "b"))]
    run = evaluate(samples_of(["1", "0.5", "0"], metadata=metadata), [Given()], ledger=url)
    client = client_of(url)
    assert keys(client.get(f"{run_address(run.id)}?field=doc.lang%3Dde&sort=order")) == ["s1", "s3"]
    assert keys(client.get(f"{run_address(run.id)}?field=group%3Db&field=doc.lang%3Dde")) == ["s3"]


def test_the_columns_of_texts_are_under_their_headers(url: str) -> None:
    samples = [Sample(id="a", input="asked", output="0.5", reference="expected")]
    run = evaluate(samples, [Given()], ledger=url)
    page = client_of(url).get(f"{run_address(run.id)}?column=reference&column=input")
    cells = re.findall(r'data-label="(input|answer|reference)"><div[^>]*>([^<]*)<', page.text)
    assert cells == [("input", "asked"), ("reference", "expected")]


def test_latency_is_that_of_the_target_and_its_distribution_is_drawn(url: str) -> None:
    def target(input: str) -> str:
        return input

    questions = [Sample(id=f"s{n}", input=str(n / 4)) for n in range(4)]
    run = evaluate(questions, [Given()], target=target, ledger=url)
    page = client_of(url).get(f"{run_address(run.id)}?column=latency&sort=-latency")
    label = re.search(r'aria-label="(latency of 4: median [^"]*)"', page.text)
    assert label is not None
    assert len(re.findall(r'data-label="latency">\d+\.\d\d s<', page.text)) == 4
    other = evaluate(samples_of(["1", "0.5"]), [Given()], ledger=url)
    page = client_of(url).get(run_address(other.id))
    assert "latency" not in page.text
    page = client_of(url).get(f"{run_address(other.id)}?column=latency")
    assert re.findall(r'data-label="latency">([^<]*)<', page.text) == ["", ""]


def test_many_scorers_are_chosen_from(url: str) -> None:
    def named(number: int) -> Any:
        return type(f"S{number}", (Given,), {"name": f"s{number:02}", "__doc__": "One of many."})()

    run = evaluate(samples_of(["1", "0.5"]), [*map(named, range(20))], ledger=url)
    client = client_of(url)
    scores = re.compile(r'class="number[^"]*" data-label="(s\d\d)"')
    assert len(scores.findall(client.get(run_address(run.id)).text)) == 24
    page = client.get(f"{run_address(run.id)}?column=score:s19&column=score:s03")
    assert scores.findall(page.text) == ["s03", "s19"] * 2
    assert client.get(f"{run_address(run.id)}?column=score:none").status == 400


def calibrated(run: Any, labels: Sequence[float], file: str = "a.csv") -> Calibration:
    pairs = tuple(LabeledScore(str(number), number % 2, (truth,)) for number, truth in enumerate(labels))
    of: dict[str, Any] = {"judge": run.judge, "signature": run.scorers[0].signature, "labels": file}
    return fit(
        Calibration(
            scorer="faithfulness", scale=1.0, lower_is_better=False, default_threshold=0.5, label_threshold=0.5,
            dataset_name="d", dataset_version="v", pairs=pairs, labels_id=of["labels"], **of,
        )
    )  # fmt: skip


def test_what_is_known_of_the_judge_is_said_in_the_words_of_the_report(url: str) -> None:
    sample = Sample(id="a", input="Who?", output="Ada was born in 1815.", context=["Ada was born in 1815."])
    run = evaluate([sample], [Faithfulness()], judge="lexical", ledger=url)
    client = client_of(url)
    assert "not calibrated (evalstone calibrate --labels FILE)" in client.get(run_address(run.id)).words
    good = calibrated(run, [0, 1] * 10)
    save_calibration(good, url)
    text = next(calibration_notes([good], [run.judge]))[0]
    assert f"faithfulness: {text}" in client.get(run_address(run.id)).words
    chance = calibrated(run, [0, 0, 1, 1] * 5, "b.csv")
    file = save_calibration(replace(chance, created="2026-01-03T00:00:00+00:00"), url)
    assert len(calibrations_for(run.judge, run.scorers[0].signature, url)) == 2
    page = client.get(run_address(run.id))
    assert "not shown to be better than chance" in page.words
    assert file is not None
    file.write_text("{")
    assert f"{file.name} is not a calibration" in client.get(run_address(run.id)).words
