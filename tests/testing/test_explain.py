"""What a score must reach, and how a failure is put in words."""

from __future__ import annotations

import pytest

from evalstone import Failed, Record, Sample, Score, ScriptedJudge, Skipped, score
from evalstone.datasets import load
from evalstone.results.gate_criteria import GateCriteria
from evalstone.results.summary import ScorerInfo
from evalstone.run.plan import scorer_info
from evalstone.scorers import parse_scorers
from evalstone.testing.explain import MOST_FINDINGS, Check, explained, sample_lines
from evalstone.testing.marks import Case, Mark, thresholds
from evalstone.types import Outcome
from evalstone.types.records import TARGET_FAILED


def test_what_is_required_is_the_best_score_of_either_direction() -> None:
    criteria = GateCriteria(min={"contains": 0.5}, require=("exact_match", "hallucination"))
    scorers = parse_scorers(["exact_match", "hallucination", "contains", "completeness"])
    case = Case(Mark(), load([{"output": "x"}]), scorers, criteria, {}, ())
    assert list(thresholds(case)) == [1.0, 0.0, 0.5, None]


def check(outcome: Outcome, threshold: float | None = None, *, name: str = "s", lower_is_better: bool = False) -> Check:
    info = ScorerInfo(name=name, signature=f"{name}@1", scale=1.0, lower_is_better=lower_is_better)
    return Check(info, Record(sample_id="a", scorer=info.name, signature=info.signature, outcome=outcome), threshold)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (check(Failed("\x1b[2J"), 0.5), "s failed: \\u001b[2J"),
        (check(Skipped("\x1b[2J"), 0.5), "s was skipped: \\u001b[2J"),
        (check(Score(0.25), 0.5), "s is 0.25, and must be at least 0.5"),
        (check(Score(0.5), 0.5), "s is 0.5"),
        (check(Score(0.5), 0.25, lower_is_better=True), "s is 0.5, and must be at most 0.25"),
        (check(Score(0.25), 0.25, lower_is_better=True), "s is 0.25"),
        (check(Score(0.5)), "s is 0.5"),
    ],
)
def test_an_outcome_is_a_few_words_that_steer_no_terminal(one: Check, text: str) -> None:
    assert one.text("s") == text


@pytest.mark.parametrize(
    ("outcome", "threshold", "lower_is_better", "passed"),
    [
        (Score(0.5), 0.5, False, True),
        (Score(0.4), 0.5, False, False),
        (Score(0.5), 0.5, True, True),
        (Score(0.6), 0.5, True, False),
        (Score(0.0), None, False, True),
        (Skipped("no"), None, False, False),
        (Failed("no"), 0.0, False, False),
    ],
)
def test_a_check_passes_if_there_is_a_score_and_it_reaches_its_threshold(
    outcome: Outcome, threshold: float | None, lower_is_better: bool, passed: bool
) -> None:
    assert check(outcome, threshold, lower_is_better=lower_is_better).passed is passed


def test_one_miss_is_the_first_line_and_several_are_counted_there() -> None:
    passed, other = check(Score(1.0), 0.5, name="kept"), check(Score(0.0), 0.5, name="other")
    missed = check(Score(0.0, reason="as\nsaid"), 0.5)
    sample = Sample(input="q", output="a")
    rest = ["  s: as said", "  question: “q”", "  answer: “a”", "  kept is 1"]
    first, *lines = explained([passed, missed], sample, keeps_reasoning=False).splitlines()
    assert (first, lines) == (missed.text("s"), rest)
    first, *lines = explained([passed, missed, other], sample, keeps_reasoning=False).splitlines()
    assert first == f"2 scores of 3 missed: {missed.text('s')}; {other.text('other')}"
    assert lines == rest


def test_the_reply_that_a_score_failed_with_is_shown_and_its_reason_once() -> None:
    lines = list(
        sample_lines(
            [check(Failed("no", reply="what\x1b?")), check(Failed("no"), name="t")],
            Sample(output="a"),
            keeps_reasoning=False,
        )
    )
    reply, *others = lines
    assert reply.partition(": ")[2] == "“what\\u001b?”"
    assert others == ["answer: “a”"]


def test_a_sample_without_an_answer_since_the_target_failed_shows_none() -> None:
    sample, by_target = Sample(input="q", output="a"), Failed(f"{TARGET_FAILED}no")
    assert list(sample_lines([check(by_target)], sample, keeps_reasoning=False)) == ["question: “q”"]
    assert (
        list(sample_lines([check(by_target), check(Score(0.0), name="t")], sample, keeps_reasoning=False))[-1]
        == "answer: “a”"
    )


PASSAGES = [f"passage {number}." for number in range(1, 13)]


def claims(*verdicts: tuple[str, list[int]], passages: list[str] = PASSAGES) -> list[str]:
    """The lines about claims with these verdicts, and the passages behind them."""
    output = " ".join(texts := [f"Claim number {number}." for number in range(1, len(verdicts) + 1)])
    of_claims = [
        {"claim": number, "reason": f"because {number}", "passages": cited, "verdict": verdict}
        for number, (verdict, cited) in enumerate(verdicts, start=1)
    ]
    judge = ScriptedJudge({"list_claims": {"claims": texts}, "verify_claims": {"verdicts": of_claims}})
    (scorer,) = parse_scorers("faithfulness")
    sample = Sample(output=output, context=passages)
    found = Check(scorer_info(scorer), score(scorer, sample, judge=judge), 1.0)
    first, *lines, answer = sample_lines([found], sample, keeps_reasoning=False)
    assert (first.startswith("faithfulness: "), answer.startswith("answer: ")) == (True, True)
    return lines


def test_claims_at_fault_have_their_reasons_and_the_passages_that_they_cite() -> None:
    assert claims(("contradicted", [12]), ("supported", [1]), ("contradicted", [2])) == [
        "✕ contradicted: “Claim number 1.”",
        "  because 1 · passage 12",
        "✕ contradicted: “Claim number 3.”",
        "  because 3 · passage 2",
        "passage 12: “passage 12.”",
        "passage 2: “passage 2.”",
    ]


def test_a_claim_that_no_passage_mentions_shows_all_of_them_up_to_a_limit() -> None:
    lines = claims(("contradicted", [9]), ("not_mentioned", []))
    assert lines[2].startswith("? not mentioned: “Claim")
    assert lines[3] == "  because 2"
    assert lines[4:] == [f"passage {number}: “passage {number}.”" for number in (9, *range(1, MOST_FINDINGS))]
    assert claims(("not_mentioned", []), passages=PASSAGES[:2])[2:] == [
        "passage 1: “passage 1.”",
        "passage 2: “passage 2.”",
    ]


@pytest.mark.parametrize(("more", "line"), [(0, None), (1, "and 1 more claim"), (2, "and 2 more claims")])
def test_many_claims_are_counted(more: int, line: str | None) -> None:
    lines = claims(*[("contradicted", [12])] * (MOST_FINDINGS + more))
    shown = 2 * MOST_FINDINGS
    assert lines[shown:] == [*([line] if line else []), "passage 12: “passage 12.”"]
    assert lines[shown - 2] == f"✕ contradicted: “Claim number {MOST_FINDINGS}.”"


@pytest.mark.parametrize(("keeps", "answer"), [(False, "answer: “a”"), (True, "answer: “<think>t</think>a”")])
def test_the_answer_is_what_was_scored(keeps: bool, answer: str) -> None:
    assert [*sample_lines([check(Score(0.0))], Sample(output="<think>t</think>a"), keeps_reasoning=keeps)] == [answer]
