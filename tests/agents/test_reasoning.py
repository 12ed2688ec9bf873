"""Reasoning in front of answers that are scored: it is no part of them, whichever way they come."""

from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    Message,
    Run,
    Sample,
    ScriptedJudge,
    StopSignal,
    checks,
    compare,
    evaluate,
    guard,
    score,
    scorer,
)
from evalstone.agents.reasoning import answered
from evalstone.errors import NotComparable
from evalstone.scorers.wrappers import PerTurn

REASONING = "The answer is A? 2+2=4, not Berlin. Hmm, no."
THOUGHT = f"<think>{REASONING}</think>\nB"
WARNING = "with a model's reasoning, such as <think>…</think>"


@pytest.mark.parametrize("output", [THOUGHT, "It is A? 2+2=4, not Berlin. No.\n</think>\n\nB"])
@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checks.choice(expected="B"), 1.0),
        (checks.choice(expected="A"), 0.0),
        (checks.contains("Berlin"), 0.0),
        (checks.contains("Berlin", text="all"), 0.0),
        (checks.exact_match("B"), 1.0),
        (PerTurn(scorer=checks.contains("Berlin")), 0.0),
    ],
)
def test_scorers_get_answers_without_reasoning(output: str, check: Any, value: float) -> None:
    messages = [Message(role="user", content="A or B?"), Message(role="assistant", content=output)]
    assert score(check, Sample(messages=messages, input="A or B?", output=output)).value == value
    turns = [Sample(input="A or B?", output=output)]
    assert score(check, Sample(input="A or B?", output=output, turns=turns)).value == value


def test_a_judge_does_not_see_the_reasoning() -> None:
    asked: list[Any] = []

    def judge(question: Any) -> str:
        asked.append(question)
        return "Yes"

    score("relevancy_check", input="A or B?", output=THOUGHT, context=["B"], judge=ScriptedJudge(judge))
    assert "Berlin" not in "".join(asked[0].render())


def test_an_answer_that_ends_in_its_reasoning_is_blank() -> None:
    assert score(checks.contains("A"), output="<think>A, or").value == 0
    outcome = score("faithfulness", output="<think>A, or", context=["A"]).outcome
    assert "is blank" in outcome.reason


def test_messages_keep_their_reasoning_and_other_samples_are_the_same() -> None:
    sample = Sample(
        id="s", messages=[Message(role="user", content=THOUGHT), Message(role="assistant", content=THOUGHT)]
    )
    user, assistant = answered(sample).messages
    assert user.content == THOUGHT  # what the user wrote is no answer
    assert (assistant.content, assistant.reasoning) == ("B", REASONING)
    known = Sample(messages=[Message(role="assistant", content=THOUGHT, reasoning="Known.")])
    assert answered(known).messages[0].reasoning == "Known."
    plain = Sample(input=THOUGHT, output="B <think>", reference="B", turns=[Sample(input="a"), Sample(input="b")])
    assert answered(plain) is plain


def test_an_expected_answer_that_a_model_wrote_has_no_reasoning_either() -> None:
    assert score(checks.exact_match(), output="B", reference=THOUGHT).value == 1
    turns = [Sample(input="A or B?", output=THOUGHT, reference=THOUGHT)]
    assert score(PerTurn(scorer=checks.exact_match()), Sample(input="A or B?", output=THOUGHT, turns=turns)).value == 1


@pytest.mark.parametrize("other", ["B", THOUGHT])
def test_both_answers_of_a_pair_are_compared_without_reasoning_unless_it_is_kept(other: str) -> None:
    asked: list[Any] = []

    def judge(question: Any) -> Any:
        asked.append(question)
        return {"reason": "Shorter.", "better": "tie"}

    rows = [{"input": "A, B or C?", "output": THOUGHT.replace("\nB", "C"), "metadata": {"old": other}}]
    evaluate(rows, "pairwise(compare_to=old)", judge=ScriptedJudge(judge), ledger=None)
    assert [(question.first_answer, question.second_answer) for question in asked] == [("C", "B"), ("B", "C")]
    asked.clear()
    evaluate(rows, "pairwise(compare_to=old)", judge=ScriptedJudge(judge), keep_reasoning=True, ledger=None)
    assert (asked[0].first_answer, asked[0].second_answer) == (rows[0]["output"], other)


def test_scorers_of_a_sample_share_one_split() -> None:
    seen = list[Any]()

    def noting(name: str) -> Any:
        def note(messages: Any) -> float:
            seen.append(messages)
            return 1.0

        return scorer(name=name)(note)

    messages = [Message(role="user", content="A or B?"), Message(role="assistant", content=THOUGHT)]
    evaluate([Sample(id="s", messages=messages)], [noting("one"), noting("two")], ledger=None)
    assert seen[0] is seen[1]


ROWS = [
    {"id": "a", "output": THOUGHT},
    {"id": "b", "output": "B"},
    {"id": "c", "output": "<thinking></thinking>Berlin"},
]


def warnings_of(run: Run) -> str:
    return " ".join(str(run).split())


@pytest.mark.parametrize("with_target", [False, True])
def test_a_run_says_how_many_outputs_begin_with_reasoning(with_target: bool) -> None:
    outputs = {row["id"]: row["output"] for row in ROWS}

    def system(*, input: str) -> str:
        return outputs[input]

    rows = [{"id": row["id"], "input": row["id"]} for row in ROWS] if with_target else ROWS
    settings: dict[str, Any] = {"target": system if with_target else None, "ledger": None}
    run = evaluate(rows, ["contains(expected=Berlin)", "exact_match(expected=B)"], **settings)
    assert [record.value for record in run.records] == [0, 1, 0, 1, 1, 0]
    assert f"2 outputs begin {WARNING}; it is not" in warnings_of(run)
    assert [sample.output for sample in run.samples or ()] == list(outputs.values())  # they are stored as they came
    kept = evaluate(rows, ["contains(expected=Berlin)"], keep_reasoning=True, **settings)
    assert [record.value for record in kept.records] == [1, 0, 1]
    assert f"2 outputs begin {WARNING}; it is scored" in warnings_of(kept)
    without = evaluate([{"output": "B"}], "contains(expected=B)", ledger=None)
    assert WARNING not in warnings_of(without)


def test_a_resumed_run_counts_the_samples_from_before(tmp_path: Path) -> None:
    stop = StopSignal()
    rows = [{"id": f"s{n}", "output": THOUGHT if n < 3 else "B"} for n in range(40)]

    def on_record(record: Any) -> None:
        if record.sample_id == "s2":
            stop.request("enough")

    settings: dict[str, Any] = {"ledger": tmp_path / "l.db", "concurrency": 1}
    first = evaluate(rows, "exact_match(expected=B)", stop=stop, on_record=on_record, **settings)
    assert not first.complete
    run = evaluate(rows, "exact_match(expected=B)", **settings)
    assert run.resumed == len(first)
    assert f"3 outputs begin {WARNING}" in warnings_of(run)
    kept = evaluate(rows, "exact_match(expected=B)", keep_reasoning=True, **settings)
    assert kept.resumed == 0


def test_a_caution_about_the_language_is_about_what_was_scored() -> None:
    answer = "Das Museum hat vierzig Säle und öffnet täglich um neun Uhr, außer an Feiertagen und montags im Winter."
    english = "The user asks about the museum, so I should say how many rooms there are and when it opens. " * 9
    rows = [{"output": f"<think>{english}</think>{answer}", "context": [answer]}]
    (caution,) = evaluate(rows, "faithfulness", ledger=None).cautions
    assert caution.kind == "not_in_english"
    assert evaluate(rows, "faithfulness", keep_reasoning=True, ledger=None).cautions == ()


def test_a_target_gets_earlier_answers_without_reasoning_and_so_does_the_user() -> None:
    seen: list[tuple[str, ...]] = []

    def system(*, messages: Any) -> Any:
        seen.append(tuple(message.content for message in messages))
        return [*messages, Message(role="assistant", content=THOUGHT)]

    def user(*, messages: Any, turn: int) -> str | None:
        assert all("<think>" not in message.content for message in messages)
        return f"Turn {turn}?" if turn < 4 else None

    recorded = [Message(role="assistant", content=THOUGHT)]
    run = evaluate(
        [Sample(id="s", messages=recorded)], "exact_match(expected=B)", target=system, user=user, ledger=None
    )
    assert seen[-1] == ("B", "Turn 1?", "B", "Turn 2?", "B", "Turn 3?")
    sample = next(iter(run.samples or ()))
    assert [message.content for message in sample.messages if message.role == "assistant"] == [THOUGHT] * 4
    assert len(sample.messages) == 7
    assert [record.value for record in run] == [1]


def test_a_guard_checks_the_answer_without_its_reasoning() -> None:
    check = guard(min={"not_contains(expected=Berlin)": 1})
    assert check(output=THOUGHT).passed
    assert not check(output="<think>?</think>Berlin").passed


def test_runs_that_treat_reasoning_differently_are_not_compared_in_silence() -> None:
    runs = [evaluate(ROWS, "contains(expected=Berlin)", keep_reasoning=keep, ledger=None) for keep in (False, True)]
    with pytest.raises(NotComparable) as caught:
        compare(*runs)
    assert [each.kind for each in caught.value.mismatches] == ["reasoning_differs"]
    assert compare(runs[0], runs[0]).scorers


def test_a_single_sample_is_scored_as_a_run_scores_it() -> None:
    spec = "not_contains(expected=Berlin)"
    for keep in (False, True):
        run = evaluate(ROWS[:1], spec, keep_reasoning=keep, ledger=None)
        assert score(spec, output=THOUGHT, keep_reasoning=keep).value == run.records[0].value == 1 - keep
