"""Retrieval against relevance judgments, by hand and against ir_measures."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import evaluate
from evalstone.scorers import AveragePrecision, HitRateAtK, NdcgAtK, PrecisionAtK, RecallAtK, ReciprocalRank, RPrecision
from evalstone.scorers.retrieval import RetrievalScorer
from evalstone.types import Failed, Outcome, Sample, Score, Skipped
from tests.fakes import outcome_of, score_of

KINDS: tuple[type[RetrievalScorer], ...] = (
    HitRateAtK,
    AveragePrecision,
    ReciprocalRank,
    NdcgAtK,
    PrecisionAtK,
    RecallAtK,
    RPrecision,
)
every = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def sample(retrieved: object, relevant: object) -> Sample:
    return Sample(metadata={"retrieved": retrieved, "relevant": relevant})


def value(scorer: RetrievalScorer, retrieved: object, relevant: object) -> float:
    return score_of(scorer, sample(retrieved, relevant), []).value


def outcome(scorer: RetrievalScorer, retrieved: object, relevant: object) -> Outcome:
    return outcome_of(scorer, sample(retrieved, relevant), [])


RANKED = ["x", "a", "y", "b", "z"]
RELEVANT = ["a", "b", "c"]
NOTHING: tuple[Any, ...] = ([], {}, {"a": 0}, {"a": -2})


@pytest.mark.parametrize(
    ("scorer", "expected"),
    [
        (PrecisionAtK(k=2), 1 / 2),
        (PrecisionAtK(k=10), 2 / 10),
        (PrecisionAtK(k=None), 2 / 5),
        (RecallAtK(k=2), 1 / 3),
        (RecallAtK(k=10), 2 / 3),
        (HitRateAtK(k=1), 0),
        (HitRateAtK(k=2), 1),
        (ReciprocalRank(), 1 / 2),
        (ReciprocalRank(k=1), 0),
        (AveragePrecision(), (1 / 2 + 2 / 4) / 3),
        (AveragePrecision(k=2), (1 / 2) / 3),
        (RPrecision(), 1 / 3),
        (
            NdcgAtK(),
            (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / math.log2(4)),
        ),
        (NdcgAtK(k=2), (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
    ],
    ids=lambda given: getattr(given, "signature", None),
)
def test_each_measure_by_hand(scorer: RetrievalScorer, expected: float):
    assert value(scorer, RANKED, RELEVANT) == pytest.approx(expected)
    scaled = score_of(replace(scorer, scale=10), sample(RANKED, RELEVANT), [])
    assert scaled.value == pytest.approx(10 * expected)


def test_grades_are_gains_linear_or_exponential():
    grades = {"a": 3, "b": 1, "c": 2}
    ranked = ["b", "x", "a"]
    linear = (1 + 3 / math.log2(4)) / (3 + 2 / math.log2(3) + 1 / math.log2(4))
    exponential = (1 + 7 / math.log2(4)) / (7 + 3 / math.log2(3) + 1 / math.log2(4))
    assert value(NdcgAtK(), ranked, grades) == pytest.approx(linear)
    assert value(NdcgAtK(gain="exponential"), ranked, grades) == pytest.approx(exponential)
    assert value(NdcgAtK(gain="exponential"), ["a"], {"a": 1e300, "b": 5000}) == 1
    assert value(NdcgAtK(), ["a"], {"a": 1e-320}) == 1


def test_the_lowest_relevant_grade_is_a_parameter():
    grades = {"a": 2, "b": 1, "c": 0, "d": -1, "e": 0.5}
    assert value(RecallAtK(), ["a"], grades) == pytest.approx(1 / 3)
    assert value(RecallAtK(min_grade=1), ["a"], grades) == pytest.approx(1 / 2)
    assert value(RecallAtK(min_grade=2), ["a"], grades) == 1
    assert isinstance(outcome(RecallAtK(min_grade=3), ["a"], grades), Skipped)


def test_a_document_that_is_retrieved_twice_keeps_both_ranks_and_counts_once():
    assert value(PrecisionAtK(k=4), ["a", "a", "x", "b"], RELEVANT) == pytest.approx(2 / 4)
    assert value(AveragePrecision(), ["a", "a", "b"], ["a", "b"]) == pytest.approx((1 + 2 / 3) / 2)
    assert value(RecallAtK(), ["a"] * 5, RELEVANT) == pytest.approx(1 / 3)
    assert value(NdcgAtK(), ["a", "a"], ["a", "b"]) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_a_relevant_id_that_is_listed_twice_is_one_document():
    assert value(RecallAtK(), ["a"], ["a", "a", "b"]) == pytest.approx(1 / 2)


def test_documents_with_scores_are_ranked_and_ties_are_broken_as_by_trec_eval():
    assert value(ReciprocalRank(), {"x": 0.1, "a": 0.9}, RELEVANT) == 1
    assert value(ReciprocalRank(), {"a": 1, "x": 1.0}, RELEVANT) == pytest.approx(1 / 2)
    assert value(ReciprocalRank(), {"a": 1, "X": 1.0}, RELEVANT) == 1


@pytest.mark.parametrize("relevant", [' {"a": 2}', "{'a': 2}", "('a',)", '["a"]'])
def test_lists_and_grades_may_be_written_as_text(relevant: str):
    assert value(ReciprocalRank(), '["x", "a"]', relevant) == value(ReciprocalRank(), "['x', 'a']", relevant) == 0.5


def test_a_text_with_too_many_lists_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "1")
    wide = outcome(ReciprocalRank(), ["a"], f"[{'[],' * 100_000}[]]")
    assert isinstance(wide, Failed)
    assert wide.error.startswith("reciprocal_rank: relevant has")


def test_the_first_ten_count_unless_another_number_is_given():
    ranked = [str(number) for number in range(20)]
    assert value(RecallAtK(), ranked, ["9", "10"]) == 0.5
    assert value(HitRateAtK(), ranked, ["10"]) == 0
    assert value(ReciprocalRank(), ranked, ["10"]) == 1 / 11


def test_ids_are_compared_as_text():
    assert value(RecallAtK(), [7, "8"], {"7": 1, "8": 1}) == 1
    assert value(RecallAtK(), ["07"], [7]) == 0


@every
def test_nothing_retrieved_is_zero(kind: type[RetrievalScorer]):
    assert value(kind(), [], RELEVANT) == 0
    assert value(kind(), {}, RELEVANT) == 0


@every
@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({}, "{} needs retrieved in metadata and relevant in metadata"),
        ({"retrieved": ["a"]}, "{} needs relevant in metadata"),
        ({"relevant": ["a"]}, "{} needs retrieved in metadata"),
        *[({"retrieved": RANKED, "relevant": nothing}, "no document is relevant") for nothing in NOTHING],
    ],
)
def test_without_ids_and_judgments_there_is_no_score(
    kind: type[RetrievalScorer], metadata: dict[str, Any], reason: str
):
    assert outcome_of(kind(), Sample(metadata=metadata), []) == Skipped(reason.format(kind.name))


@every
def test_what_a_target_retrieved_is_in_its_state_and_never_that_of_the_dataset(kind: type[RetrievalScorer]):
    rows = [{"input": "Where is Oslo?", "retrieved": ["a"], "relevant": ["a"]}]

    def found(*, input: str) -> dict[str, object]:
        return {"output": input, "state": {"retrieved": ["b"]}}

    def silent(*, input: str) -> str:
        return input

    (record,) = evaluate(rows, kind(), target=found, ledger=None)
    assert record.value == 0
    (record,) = evaluate(rows, kind(), target=silent, ledger=None)
    assert isinstance(record.outcome, Skipped)
    assert record.outcome.reason.startswith(f"{kind.name} needs retrieved ")
    assert "target" in record.outcome.reason


@pytest.mark.parametrize(
    ("retrieved", "relevant", "told"),
    [
        ("a", ["a"], "retrieved must be a list of ids, or numbers by id, not 'a'"),
        ("[x, a]", ["a"], "retrieved must be a list with its texts in quotes"),
        ("['x' 'a', 'b']", ["a"], "retrieved must be a list with commas"),
        ("{'x', 'a'}", ["a"], "retrieved must be a list, not a set"),
        ("nan", ["a"], "retrieved must be empty if it is missing"),
        ("[" * 100_000, ["a"], "retrieved is nested too deeply"),
        (["a"], "a", "relevant must be a list of ids, or numbers by id, not 'a'"),
        (["a"], 3, "relevant must be a list of ids, or numbers by id, not 3"),
        ([None], ["a"], "retrieved: an id must be text or a whole number, not None"),
        ([1.0], ["a"], "retrieved: an id must be text or a whole number, not 1.0"),
        ([{"id": "a"}], ["a"], "retrieved: an id must be text or a whole number, not {'id': 'a'}"),
        (["a"], [True], "relevant: an id must be text or a whole number, not True"),
        (["a"], {"a": "high"}, "relevant: the grade of 'a' must be a number, not 'high'"),
        (["a"], {"a": 10**400}, "relevant: the grade of 'a' must be a number, not 1000"),
        (["a"], {"a": True}, "relevant: the grade of 'a' must be a number, not True"),
        ({"a": "high"}, ["a"], "retrieved: the score of 'a' must be a number, not 'high'"),
    ],
)
def test_data_of_another_form_fails_with_its_place(retrieved: object, relevant: object, told: str):
    failed = outcome(ReciprocalRank(), retrieved, relevant)
    assert isinstance(failed, Failed)
    assert failed.error.startswith(f"reciprocal_rank: {told}")


def test_the_evidence_has_the_gains_and_what_is_missing():
    score = score_of(RecallAtK(), sample(RANKED, {"a": 2, "b": 1, "c": 3}), [])
    assert score.evidence.gains == (0, 2, 0, 1, 0)
    assert score.evidence.grades == (3, 2, 1)
    assert score.evidence.missing == ("c",)


def test_columns_of_a_file_are_read_from_the_metadata():
    rows: list[Mapping[str, Any]] = [
        {"question": "q", "answer": "a", "retrieved": ["d1", "d2"], "relevant": ["d2"]},
        {"question": "q", "answer": "a", "retrieved": ["d3"], "relevant": {"d3": 2}},
        {"question": "q", "answer": "a", "retrieved": [], "relevant": []},
    ]
    run = evaluate(rows, ["reciprocal_rank", "ndcg_at_k(k=5)"], ledger=None)
    assert run["reciprocal_rank"].mean == pytest.approx((1 / 2 + 1) / 2)
    assert (run["reciprocal_rank"].n_score, run["reciprocal_rank"].n_skipped) == (2, 1)


@pytest.mark.filterwarnings(
    r"ignore:(ast\.Num|Attribute n) is deprecated:DeprecationWarning"
)  # of ir_measures on newer versions of Python
def test_ir_measures_counts_alike():
    rng = random.Random(15)
    measures: dict[Any, RetrievalScorer] = {
        ir_measures.parse_measure("P@5"): PrecisionAtK(k=5),
        ir_measures.parse_measure("R@5"): RecallAtK(k=5),
        ir_measures.parse_measure("R@20"): RecallAtK(k=20),
        ir_measures.parse_measure("Success@5"): HitRateAtK(k=5),
        ir_measures.parse_measure("nDCG"): NdcgAtK(k=None),
        ir_measures.parse_measure("nDCG@5"): NdcgAtK(k=5),
        ir_measures.parse_measure("RR"): ReciprocalRank(),
        ir_measures.parse_measure("AP"): AveragePrecision(),
        ir_measures.parse_measure("AP@5"): AveragePrecision(k=5),
        ir_measures.parse_measure("Rprec"): RPrecision(),
        ir_measures.parse_measure("P(rel=2)@5"): PrecisionAtK(k=5, min_grade=2),
        ir_measures.parse_measure("R(rel=2)@5"): RecallAtK(k=5, min_grade=2),
        ir_measures.parse_measure("AP(rel=2)"): AveragePrecision(min_grade=2),
    }
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in map(str, range(60)):
        documents = [f"d{number}" for number in range(rng.randint(3, 40))]
        qrels[query] = {document: rng.choice([-1, 0, 0, 1, 2, 3]) for document in documents}
        qrels[query][documents[0]] = 2
        found = rng.sample([*documents, "other1", "other2"], rng.randint(1, len(documents)))
        run[query] = {document: rng.choice([0.5, round(rng.random(), 2)]) for document in found}  # with ties
    compared = 0
    for metric in cast(Any, ir_measures).iter_calc(list(measures), qrels, run):
        ours = value(measures[metric.measure], run[metric.query_id], qrels[metric.query_id])
        assert ours == pytest.approx(metric.value, abs=1e-9), metric
        compared += 1
    assert compared == 60 * len(measures)


IDS = st.lists(st.sampled_from("abcdefgh"), max_size=8)


@every
@given(retrieved=IDS, relevant=st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 5), max_size=6))
def test_any_ranking_has_a_score_in_range_and_a_perfect_one_is_best(
    kind: type[RetrievalScorer], retrieved: list[str], relevant: dict[str, float]
):
    made = outcome(kind(), retrieved, relevant)
    if isinstance(made, Score):
        assert 0 <= made.value <= 1
        best = value(kind(), sorted(relevant, key=relevant.__getitem__, reverse=True), relevant)
        assert made.value <= best + 1e-12
        assert best == pytest.approx(1) or kind is PrecisionAtK
    else:
        assert isinstance(made, Skipped)
