"""What a judge lists, quotes and cites comes from the material, or is no answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import Failed, ScriptedJudge, evaluate
from evalstone.errors import ReplyError
from evalstone.questions import (
    ClaimSupported,
    CompareStatements,
    FindToxicity,
    JudgePassageStatements,
    ListClaims,
    ListOpinions,
    ListQuestions,
    ListStatements,
    VerifyClaims,
)
from evalstone.questions.base import Question
from evalstone.questions.rating import WriteSteps
from evalstone.questions.reply import check_list, check_quoted

HARBOR = "The harbor was built in 1902 by Ida Holm. It has two docks, and only a fool would pay 8 euros to see it."
ADA = "Ada, born in 1815, wrote the first program"


def read(question: Question[Any], reply: Any) -> Any:
    return question.parse(json.dumps(reply))


@pytest.mark.parametrize(
    ("question", "key"),
    [
        (ListClaims(text=HARBOR), "claims"),
        (ListOpinions(text=HARBOR), "opinions"),
        (ListQuestions(text=HARBOR, limit="5"), "questions"),
        (ListStatements(answer=HARBOR), "statements"),
    ],
)
def test_a_listed_text_from_elsewhere_is_refused_with_its_place(question: Question[Any], key: str) -> None:
    good = "It has two docks"
    assert read(question, {key: [good]}) == (good,)
    for invented in (ADA, f"{good}, says William King", "It has 7 docks", "Nobody likes broccoli"):
        with pytest.raises(ReplyError, match=rf"^{key}\.2: "):
            read(question, {key: [good, invented]})


def test_the_words_in_which_an_opinion_is_reported_need_not_be_in_the_text() -> None:
    opinions = ["The author thinks and insists that only fools pay.", "The author expressed the view that it is small."]
    assert read(ListOpinions(text=f"{HARBOR} It is small."), {"opinions": opinions}) == tuple(opinions)
    with pytest.raises(ReplyError, match="doesn't have: broccoli"):
        read(ListOpinions(text=HARBOR), {"opinions": ["The author believes that broccoli is good."]})
    with pytest.raises(ReplyError, match=r": thinks, insists;"):
        read(ListClaims(text=HARBOR), {"claims": ["He thinks, insists."]})


def test_a_claim_may_say_that_the_text_has_something() -> None:
    text = "Fix your roof, lift it up, and sing of home."
    claims = ["The candidate answer describes how to lift it up.", "The document mentions home."]
    assert read(ListClaims(text=text), {"claims": claims}) == tuple(claims)
    with pytest.raises(ReplyError, match="doesn't have: Bern"):
        read(ListClaims(text=text), {"claims": ["The list includes Bern."]})


def test_the_items_of_a_list_can_be_claims_without_their_question() -> None:
    claims = [f"{item} is an ingredient for sauces." for item in ("Salt", "Lime juice", "Basil")]
    question = ListClaims(text="Salt, lime juice, basil")
    assert read(question, {"claims": claims}) == tuple(claims)
    with pytest.raises(ReplyError, match=rf"claims.1: '{claims[0]}'"):
        read(question, {"claims": claims[:1]})


def test_words_of_the_question_complete_a_short_answer_and_do_not_stand_for_an_empty_one() -> None:
    asked = "What is the capital of France?"
    claim = "The capital of France is Paris."
    assert read(ListClaims(text="Paris", question=asked), {"claims": [claim]}) == (claim,)
    for text in ("", " ", "…"):
        assert read(ListClaims(text=text, question=asked), {"claims": []}) == ()
        with pytest.raises(ReplyError):
            read(ListClaims(text=text, question=asked), {"claims": [claim]})


def test_numbers_in_the_middle_of_a_quotation_are_no_numbering() -> None:
    text = "See passage 9. Museums are shut, and only a fool would go."
    for part in (text, f"2. {text}"):
        found = read(FindToxicity(text=text), {"verdicts": [{"reason": "It is.", "part": part, "verdict": "yes"}]})
        assert found[0].part == part


def test_a_quoted_part_stands_in_the_text_whatever_its_case_and_punctuation() -> None:
    def found(part: str) -> Any:
        return read(FindToxicity(text=HARBOR), {"verdicts": [{"reason": "It is.", "part": part, "verdict": "yes"}]})

    for part in ("only a fool would pay 8 euros", '"Only a fool\nwould pay 8 euros!"', "only a fool … to see it"):
        assert found(part)[0].toxic
    for part in (
        "",
        "It has two docks. Ada wrote it.",
        "only a fool would pay 80 euros",
        "fool a only",
        "to see it … only a fool",
        "ool",
        "…",
    ):
        with pytest.raises(ReplyError):
            found(part)


def test_an_emoji_is_a_part_of_a_text_and_no_placeholder() -> None:
    found = read(
        FindToxicity(text="Great! 🎉"), {"verdicts": [{"reason": "It is kind.", "part": "🎉", "verdict": "no"}]}
    )
    assert found[0].part == "🎉"
    with pytest.raises(ReplyError, match=r"claims\.1"):
        read(ListClaims(text="Great! 🎉"), {"claims": ["🎉"]})


def test_statements_of_passages_stand_in_a_passage() -> None:
    question = JudgePassageStatements(question="When?", context=(HARBOR, "Ships come at noon."))
    verdict = {"reason": "It helps.", "statement": "Ships come at noon", "verdict": "yes"}
    assert read(question, {"verdicts": [verdict]})[0].relevant
    with pytest.raises(ReplyError, match="passages"):
        read(question, {"verdicts": [{**verdict, "statement": ADA}]})


@pytest.mark.parametrize("verdict", ["supported", "contradicted"])
def test_a_verdict_by_a_passage_cites_one_that_exists(verdict: str) -> None:
    question = VerifyClaims(claims=("It was built in 1902.",), context=(HARBOR,))

    def decided(word: str, *passages: int) -> Any:
        return read(
            question, {"verdicts": {"1": {"reason": "It says so.", "passages": list(passages), "verdict": word}}}
        )

    assert decided(verdict, 1)[0].verdict == verdict
    assert decided("not_mentioned")[0].passages == ()
    with pytest.raises(ReplyError, match=f"verdict 1: '{verdict}' cites"):
        decided(verdict)
    for number in (0, 2, -1):
        with pytest.raises(ReplyError):
            decided(verdict, number)


def test_a_cited_passage_has_something_to_say() -> None:
    question = VerifyClaims(claims=("It was built in 1902.",), context=(HARBOR, " \u200b"))
    for cited in ([2], [2, 2]):
        with pytest.raises(ReplyError, match="cites 2, and nothing"):
            read(question, {"verdicts": {"1": {"reason": "It is.", "passages": cited, "verdict": "supported"}}})
    kept = read(question, {"verdicts": {"1": {"reason": "It is.", "passages": [1, 2], "verdict": "supported"}}})
    assert kept[0].passages == (1, 2)


def test_a_claim_of_the_worked_example_is_copied_whatever_the_language_of_the_text() -> None:
    copied, said = "The museum has no café.", "The animal is on the sofa."
    for text in ("Der Hund schläft auf dem Sofa und ist müde.", "猫在沙发上睡觉。"):
        with pytest.raises(ReplyError, match=r"^claims\.1: .* copied"):
            read(ListClaims(text=text), {"claims": [copied]})
        assert read(ListClaims(text=text), {"claims": [said]})
    for text in (copied, "Museum: no café, may reopen in May"):
        assert read(ListClaims(text=text), {"claims": [copied]}) == (copied,)


@pytest.mark.parametrize("unit", ["good ", "The passage says so. ", "很好", "!"])
def test_a_reason_that_went_on_until_it_was_cut_off_is_none(unit: str) -> None:
    question = ClaimSupported(claim="It has two docks.", context=(HARBOR,))
    looping = f"It is so. {unit * 200}"[:500]
    with pytest.raises(ReplyError, match=r"^reason: it repeats"):
        read(question, {"reason": looping, "verdict": "yes"})
    assert read(question, {"reason": f"It is {unit * 5}", "verdict": "yes"}).verdict == "yes"
    shouted = FindToxicity(text=looping)
    verdict = {"reason": "It repeats a word.", "part": looping, "verdict": "no"}
    assert read(shouted, {"verdicts": [verdict]})[0].part == looping


@pytest.mark.parametrize(("text", "part"), [("...", "..."), (" …\n", "…"), ("Sentence.", "Sentence")])
def test_a_text_that_looks_like_a_placeholder_can_be_quoted(text: str, part: str) -> None:
    verdicts = {"verdicts": [{"reason": "It says nothing.", "part": part, "verdict": "no"}]}
    assert read(FindToxicity(text=text), verdicts)[0].part == part
    with pytest.raises(ReplyError, match="is a placeholder"):
        read(FindToxicity(text=HARBOR), verdicts)


def test_a_match_names_the_words_of_the_answer_and_a_missing_one_none() -> None:
    question = CompareStatements(reference=("It was built in 1902.",), answer=("It has two docks.", "It is from 1902."))

    def compared(match: str, answer: str) -> Any:
        matches = {"1": {"reason": "The year.", "answer": answer, "match": match}}
        return read(question, {"matches": matches, "extra": [], "contradictions": []})

    assert compared("semantic", "It is from 1902").matches[0].answer == "It is from 1902"
    assert compared("semantic", "2. It is from 1902.").matches[0].match == "semantic"
    assert compared("missing", "none").matches[0].answer == ""
    for match, answer in (("semantic", ""), ("exact", "It was built in 1902."), ("partial", "none")):
        with pytest.raises(ReplyError, match=r"match 1"):
            compared(match, answer)


def test_a_list_that_does_not_end_is_refused() -> None:
    with pytest.raises(ReplyError, match="a list ends before 100"):
        read(ListClaims(text=HARBOR), {"claims": ["It has two docks."] * 100})
    with pytest.raises(ReplyError, match="repeats itself"):
        read(ListClaims(text=HARBOR), {"claims": ["It has two docks.", "Ida Holm built it."] * 5})
    part = {"reason": "Harmless.", "part": "It has two docks", "verdict": "no"}
    with pytest.raises(ReplyError, match="repeats itself"):
        read(FindToxicity(text=HARBOR), {"verdicts": [{**part, "reason": f"Harmless, {n}."} for n in range(10)]})
    compared: dict[str, Any] = {
        "matches": {"1": {"reason": "No.", "answer": "", "match": "missing"}},
        "extra": [],
        "contradictions": [],
    }
    conflict = {"reason": "The year.", "answer": "It is old.", "reference": "It is new."}
    for more in ({"extra": ["It is old."] * 10}, {"contradictions": [conflict] * 10}):
        with pytest.raises(ReplyError, match="repeats itself"):
            read(CompareStatements(reference=("It is new.",), answer=("It is old.",)), {**compared, **more})
    shouted = "Buy now! " * 10
    assert len(read(ListStatements(answer=shouted), {"statements": ["Buy now!"] * 10})) == 10


def test_a_list_repeats_itself_from_eight_items_on_when_half_of_them_are_repetitions() -> None:
    for items in (["a"] * 7, [*"abcde", *"abc"], range(99)):
        check_list(items, "claims")
    check_list(["a"] * 99, "claims", repeats=True)
    for again in ([*"abcd"] * 2, ["a"] * 8):
        with pytest.raises(ReplyError, match="repeats itself"):
            check_list(again, "claims")
    check_quoted(["Buy!"] * 7, "Buy!", "claims")
    check_quoted(["Buy!"] * 8, "Buy! " * 5, "claims")
    for quotes in (8, 9):
        with pytest.raises(ReplyError, match="repeats itself"):
            check_quoted(["Buy!"] * quotes, "Buy! " * 4, "claims")


@pytest.mark.parametrize(
    ("passages", "largest", "most"), [(0, 1, 0), (1, 1, 1), (9, 9, 9), (10, 10, 10), (11, 20, 20), (51, 100, 20)]
)
def test_a_schema_bounds_citations_by_a_round_number_of_passages(passages: int, largest: int, most: int) -> None:
    schema: Any = VerifyClaims(claims=("It is.",), context=("p",) * passages).json_schema
    cited = schema["$defs"]["verdict"]["properties"]["passages"]
    assert (cited["items"]["maximum"], cited["maxItems"]) == (largest, most)


def test_a_list_without_steps_is_no_answer() -> None:
    with pytest.raises(ReplyError, match="steps: at least"):
        read(WriteSteps(criterion="Is it kind?", parts=("output",)), {"steps": [" "]})


def test_an_invented_claim_costs_its_own_sample_and_the_model_is_shown_why() -> None:
    samples = [{"id": "1", "output": HARBOR, "context": [HARBOR]}]
    judge = ScriptedJudge(lambda question: {"claims": [f"{ADA}."]}, retries=2)
    (record,) = evaluate(samples, "faithfulness", judge=judge, ledger=None).records
    assert isinstance(record.outcome, Failed)
    assert "1815" in record.outcome.error
    assert len(judge.asked) == 1
    assert record.calls[0].usage.requests == 3
