"""Guards: what is blocked and why, what has no score, and that they answer in time."""

from __future__ import annotations

import asyncio
import functools
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Literal

import pytest

from evalstone import ConfigError, Failed, ModelJudge, Sample, Score, ScriptedJudge, Skipped, evaluate, guard
from evalstone._core import sync
from evalstone.errors import DataError
from evalstone.live import Guard, GuardVerdict
from evalstone.live.guard import THREADS
from evalstone.scorers import Scorer
from evalstone.targets import Answer
from evalstone.types import Record
from tests.fakes import longest_wait
from tests.serving import Response, serving

CONTEXT = ["Paris is the capital of France.", "Paris has 2 million inhabitants."]
GOOD, BAD_CLAIM = CONTEXT[0], "It has 90 million inhabitants."
BAD = f"{GOOD} {BAD_CLAIM}"


class Sleeps(Scorer):
    """Takes its time."""

    name = "sleeps"
    seconds: float = 0.0

    def score(self, *, output: str) -> Score:
        time.sleep(self.seconds)
        return Score(1.0)


class Breaks(Scorer):
    """Has an error."""

    name = "breaks"

    def score(self, *, output: str) -> Score:
        raise KeyError(output)


def declines(output: str) -> Skipped:
    """Has no score, and says so in the words of the answer."""
    return Skipped(output)


def says(answer: Any) -> Callable[[list[str]], Any]:
    """A function that says this of its context."""

    def function(context: list[str]) -> Any:
        return answer

    return function


LANGUAGE: ContextVar[str] = ContextVar("language", default="")


def test_a_scorer_sees_the_context_of_the_request() -> None:
    def language(output: str) -> float:
        return float(LANGUAGE.get() == output)

    check = guard(min={language: 1})
    token = LANGUAGE.set("fr")
    try:
        assert check(output="fr").passed
        assert asyncio.run(check.acheck(output="fr")).passed
    finally:
        LANGUAGE.reset(token)
    assert not check(output="fr").passed


def test_a_score_that_is_missing_is_of_the_group_of_its_sample() -> None:
    (record,) = guard(min={Sleeps(seconds=0.05): 1}, timeout=0.001)(Sample(output="x", group="g")).records
    assert (record.group, record.value) == ("g", None)


def test_a_claim_that_no_passage_supports_blocks_and_the_explanation_quotes_both() -> None:
    check = guard(min={"faithfulness": 0.9, "contains(expected=Paris)": 1})
    verdict = check(input="Tell me of Paris.", output=BAD, context=CONTEXT)
    assert (verdict.passed, verdict.blocked, verdict.blocked_by) == (False, True, ("faithfulness",))
    assert verdict.undefined == ()
    assert [record.value for record in verdict.records] == [0.5, 1.0]
    assert "faithfulness is 0.5, below 0.9: " in verdict.explanation
    assert f"“{BAD_CLAIM}”" in verdict.explanation
    assert f'passage 2: "{CONTEXT[1]}"' in verdict.explanation
    assert "contains" not in verdict.explanation
    passed = check(output=GOOD, context=CONTEXT)
    assert (passed.passed, passed.blocked, passed.explanation) == (True, False, "")
    assert (str(passed), str(verdict)) == ("passed", f"blocked by faithfulness: {verdict.explanation}")


def test_lower_is_better_turns_the_threshold_around() -> None:
    check = guard(max={"hallucination": 0.4})
    verdict = check(output=BAD, context=CONTEXT)
    assert verdict.blocked_by == ("hallucination",)
    assert "hallucination is 0.5, above 0.4" in verdict.explanation
    assert check(output=GOOD, context=CONTEXT).passed
    assert guard(max={"hallucination": 0.5})(output=BAD, context=CONTEXT).passed  # the threshold itself passes


def test_thresholds_are_in_the_unit_of_the_score() -> None:
    check = guard(min={"contains(expected=a)": 1.0, "faithfulness": 0.4})
    assert check(output=BAD, context=CONTEXT).passed
    assert [threshold for _, threshold in check.thresholds] == [1.0, 0.4]


def test_flagging_lets_the_answer_through_and_says_what_is_wrong() -> None:
    seen: list[GuardVerdict] = []
    check = guard(min={"faithfulness": 0.9}, mode="flag", on_verdict=seen.append)
    assert check.protect("no")(says(BAD))(CONTEXT) == BAD
    (verdict,) = seen
    assert (verdict.passed, verdict.blocked, verdict.blocked_by) == (False, False, ("faithfulness",))


@pytest.mark.parametrize(("on_undefined", "passed"), [("block", False), ("pass", True)])
def test_what_has_no_score_blocks_unless_it_is_let_pass_and_is_always_named(on_undefined: Any, passed: bool) -> None:
    check = guard(min={Breaks(): 0.5, "faithfulness": 0.5, "contains(expected=Paris)": 0.5}, on_undefined=on_undefined)
    verdict = check(output=GOOD)
    assert verdict.passed is passed
    assert verdict.undefined == ("breaks", "faithfulness")
    assert verdict.blocked_by == (() if passed else ("breaks", "faithfulness"))
    assert [type(record.outcome) for record in verdict.records] == [Failed, Skipped, Score]
    assert "faithfulness needs context" in verdict.explanation
    assert "no score: KeyError" in verdict.explanation


def test_it_blocks_by_default_where_it_can_not_decide() -> None:
    assert guard(min={"faithfulness": 0.5})(output=GOOD).blocked


def test_a_slow_scorer_is_not_waited_for_and_the_others_count() -> None:
    check = guard(min={"contains(expected=Paris)": 0.5, Sleeps(seconds=1.5): 0.5}, timeout=0.3)
    began = time.perf_counter()
    verdict = check(output=GOOD)
    assert time.perf_counter() - began < 1
    assert verdict.undefined == ("sleeps",)
    assert verdict.records[0].value == 1.0
    assert verdict.records[1].outcome == Failed("no score within 0.3 s")


async def never(_: Any) -> str:
    await asyncio.sleep(60)
    return "{}"


def test_judges_that_are_silent_are_left_after_the_timeout_and_their_threads_are_free_again() -> None:
    check = guard(min={"faithfulness": 0.5}, judge=ScriptedJudge(never), timeout=0.1)
    for _ in range(THREADS + 1):
        began = time.perf_counter()
        assert check(output=GOOD, context=CONTEXT).undefined == ("faithfulness",)
        assert time.perf_counter() - began < 1
    assert guard(min={"contains(expected=Paris)": 1}, timeout=5)(output=GOOD).seconds < 1


def test_a_text_that_takes_longer_than_the_timeout_is_not_waited_for() -> None:
    """The lexical judge doesn't stop before it is done."""
    check = guard(min={"faithfulness": 0.5}, timeout=0.05)
    text = " ".join(f"Town {n} has {n} towers and lies at the river." for n in range(3000))
    for verdict in (check(output=text, context=[text]), asyncio.run(check.acheck(output=f"{text}!", context=[text]))):
        assert verdict.undefined == ("faithfulness",)
        assert verdict.seconds < 1


def test_guards_that_are_stuck_keep_others_from_a_verdict_but_not_from_an_end() -> None:
    stuck = guard(min={Sleeps(seconds=0.8): 0.5}, timeout=0.05)
    for _ in range(THREADS):
        assert stuck(output=GOOD).undefined == ("sleeps",)
    began = time.perf_counter()
    verdict = guard(min={"contains(expected=Paris)": 1}, timeout=0.1)(output=GOOD)
    assert time.perf_counter() - began < 0.5
    assert verdict.undefined == () or verdict.records[0].outcome == Failed("no score within 0.1 s")


@pytest.mark.slow
def test_the_event_loop_goes_on_while_a_long_text_is_looked_at() -> None:
    check = guard(min={"faithfulness": 0.5}, timeout=30)
    text = " ".join(f"Town {n} has {n} towers and lies at the river." for n in range(1500))

    async def main() -> float:
        return await longest_wait(check.acheck(output=text, context=[text]))

    began = time.perf_counter()
    longest = asyncio.run(main())
    assert longest < (time.perf_counter() - began) / 2


def test_answers_are_looked_at_beside_each_other() -> None:
    check = guard(min={Sleeps(seconds=0.3): 0.5}, timeout=10)

    async def main() -> None:
        await asyncio.gather(*(check.acheck(output=GOOD) for _ in range(THREADS)))

    began = time.perf_counter()
    asyncio.run(main())
    assert time.perf_counter() - began < 0.3 * THREADS


def test_many_answers_at_once_each_get_their_own_verdict() -> None:
    check = guard(min={"contains(expected=n7)": 1}, timeout=10)

    async def main() -> list[GuardVerdict]:
        return await asyncio.gather(*(check.acheck(output=f"n{n}") for n in range(40)))

    verdicts = asyncio.run(main())
    assert [n for n, verdict in enumerate(verdicts) if verdict.passed] == [7]


def test_a_canceled_check_leaves_no_work_behind() -> None:
    check = guard(min={Sleeps(seconds=0.3): 0.5}, timeout=10)

    async def main() -> None:
        tasks = [asyncio.create_task(check.acheck(output=GOOD)) for _ in range(THREADS + 60)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        began = time.perf_counter()
        assert (await guard(min={"contains(expected=Paris)": 1}, timeout=5).acheck(output=GOOD)).passed
        assert time.perf_counter() - began < 1  # those that waited for their turn were left out

    asyncio.run(main())


def test_a_protected_function_returns_the_fallback_in_place_of_a_blocked_answer() -> None:
    check = guard(min={"faithfulness": 0.9})

    @check.protect("I don't know.")
    def answer(input: str, context: Sequence[str] = CONTEXT) -> str:
        """Says something."""
        return BAD if "inhabitants" in input else GOOD

    assert answer("the capital", CONTEXT) == GOOD
    assert answer("the capital") == GOOD
    assert answer("inhabitants", context=CONTEXT) == "I don't know."
    assert answer.__doc__ == "Says something."


def test_a_protected_coroutine_function_may_bring_its_context_and_make_its_fallback() -> None:
    check = guard(min={"faithfulness": 0.9})

    def blocked(verdict: GuardVerdict) -> Answer:
        return Answer(output=f"Blocked: {', '.join(verdict.blocked_by)}")

    @check.protect(blocked)
    async def answer(question: str) -> Answer:
        await asyncio.sleep(0)
        return Answer(output=BAD, context=CONTEXT)

    assert asyncio.run(answer("?")).output == "Blocked: faithfulness"


def test_a_function_with_names_of_its_own_says_what_the_sample_is() -> None:
    check = guard(min={"faithfulness": 0.9})

    def case(answer: tuple[int, str], question: str, docs: list[str]) -> Sample:
        return Sample(input=question, output=answer[1], context=docs)

    @check.protect("no", sample=case)
    def answer(question: str, docs: list[str]) -> tuple[int, str]:
        return 1, BAD

    assert answer("?", docs=CONTEXT) == "no"


@pytest.mark.parametrize("mode", ["block", "flag"])
def test_a_function_whose_parameters_are_no_fields_is_warned_of_once(
    mode: Literal["block", "flag"], caplog: pytest.LogCaptureFixture
) -> None:
    def answer(question: str, docs: list[str]) -> str:
        return GOOD

    check = guard(min={"faithfulness": 0.9}, mode=mode)
    if mode == "block":
        with pytest.raises(ConfigError, match="fallback=…"):
            check.protect()
    protected = (check.protect("no") if mode == "block" else check.protect())(answer)
    assert [protected("?", CONTEXT) for _ in range(2)] == [GOOD if mode == "flag" else "no"] * 2
    (said,) = [record.getMessage() for record in caplog.records]
    assert re.search(r"answer: .* needs context", said)
    assert "sample=" in said
    caplog.clear()
    assert guard(min={"faithfulness": 0.9}).protect("no")(says(GOOD))([]) == "no"
    assert not caplog.records


def test_a_blank_answer_has_no_score() -> None:
    assert guard(min={"faithfulness": 0.9}).protect("no")(says(""))(CONTEXT) == "no"


@pytest.mark.parametrize("answer", [{"text": GOOD, "source": 1}, None, 3, object(), {"output": GOOD, "context": 5}])
@pytest.mark.parametrize("mode", ["block", "flag"])
@pytest.mark.parametrize("on_undefined", ["block", "pass"])
def test_an_answer_that_can_not_be_read_has_no_score_and_the_request_goes_on(
    answer: object, mode: Any, on_undefined: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[GuardVerdict] = []
    scorers = ["faithfulness", "contains(expected=Paris)"]
    check = guard(min=dict.fromkeys(scorers, 0.9), mode=mode, on_undefined=on_undefined, on_verdict=seen.append)
    protected = check.protect("no")(says(answer))
    blocked = mode == "block" and on_undefined == "block"
    assert [protected(CONTEXT) for _ in range(2)] == ["no" if blocked else answer] * 2
    verdict = seen[0]
    assert (verdict.blocked, verdict.passed) == (blocked, on_undefined == "pass")
    assert verdict.undefined == ("faithfulness", "contains")
    assert re.search(r"faithfulness .* be checked", verdict.explanation)
    (said,) = [record.getMessage() for record in caplog.records]
    assert re.search(r"function: .* be checked", said)


def test_a_guard_as_a_decorator_names_its_method() -> None:
    with pytest.raises(ConfigError, match="decorate a function with its method protect"):
        guard(min={"faithfulness": 0.9})(lambda output: output)  # type: ignore[arg-type]


def test_an_async_function_whose_answer_can_not_be_read_is_not_broken_by_its_guard() -> None:
    async def answer(context: list[str]) -> Any:
        return None

    assert asyncio.run(guard(min={"faithfulness": 0.9}, mode="flag").protect()(answer)(CONTEXT)) is None
    assert asyncio.run(guard(min={"faithfulness": 0.9}).protect("no")(answer)(CONTEXT)) == "no"


@pytest.mark.parametrize("made", [None, 3, {"answer": GOOD}, {"output": 3}, ZeroDivisionError()])
def test_a_sample_that_can_not_be_made_is_no_score(made: Any) -> None:
    def case(answer: str, context: list[str]) -> Any:
        if isinstance(made, Exception):
            raise made
        return made

    seen: list[GuardVerdict] = []
    check = guard(min={"faithfulness": 0.9}, mode="flag", on_verdict=seen.append)
    assert check.protect(sample=case)(says(GOOD))(CONTEXT) == GOOD
    assert seen[0].undefined == ("faithfulness",)


@pytest.mark.parametrize("mode", ["block", "flag"])
def test_an_error_of_on_verdict_is_logged_once_and_the_verdict_stands(
    mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(verdict: GuardVerdict) -> None:
        raise ZeroDivisionError("0")

    check = guard(min={"faithfulness": 0.9}, mode=mode, on_verdict=fails)
    verdict = check(output=BAD, context=CONTEXT)
    assert (verdict.passed, verdict.blocked) == (False, mode == "block")
    assert asyncio.run(check.acheck(output=GOOD, context=CONTEXT)).passed
    assert check.protect("no")(says(BAD))(CONTEXT) == ("no" if mode == "block" else BAD)
    (said,) = [record.getMessage() for record in caplog.records if record.name == "evalstone.live"]
    assert re.search(r"on_verdict .*: ZeroDivisionError: 0", said)


def test_on_verdict_must_be_a_function() -> None:
    number: Any = 3
    with pytest.raises(ConfigError, match="on_verdict"):
        guard(min={"faithfulness": 0.9}, on_verdict=number)


class Answers:
    """An object that is called like a function."""

    def __call__(self, question: str) -> str:
        return GOOD


class AnswersLater:
    """Likewise, with a coroutine."""

    async def __call__(self, question: str) -> str:
        return GOOD


def answer_to(question: str, source: str) -> str:
    """Says something."""
    return GOOD


def test_partial_functions_and_callable_objects_are_protected_and_named(caplog: pytest.LogCaptureFixture) -> None:
    check = guard(min={"faithfulness": 0.9})
    assert check.protect("no")(functools.partial(answer_to, source="web"))("?") == "no"
    assert check.protect("no")(Answers())("?") == "no"
    assert asyncio.run(check.protect("no")(AnswersLater())("?")) == "no"
    said = [record.getMessage().partition(": ")[0] for record in caplog.records]
    assert said == ["answer_to", "Answers", "AnswersLater"]


def test_a_coroutine_function_as_the_fallback_is_awaited() -> None:
    async def blocked(verdict: GuardVerdict) -> str:
        await asyncio.sleep(0)
        return f"Blocked by {verdict.blocked_by[0]}"

    async def answer(context: list[str]) -> str:
        return BAD

    check = guard(min={"faithfulness": 0.9})
    assert asyncio.run(check.protect(blocked)(answer)(CONTEXT)) == "Blocked by faithfulness"
    with pytest.raises(ConfigError, match="coroutine"):
        check.protect(blocked)(says(BAD))


def test_what_a_function_does_to_its_arguments_is_no_part_of_the_sample() -> None:
    check = guard(min={"faithfulness": 0.9})

    @check.protect("no")
    def answer(context: list[str]) -> str:
        context.append(BAD)
        return BAD

    async def answer_later(docs: list[str]) -> str:
        docs.append(BAD)
        return BAD

    def case(answer: str, docs: list[str]) -> Sample:
        return Sample(output=answer, context=docs)

    assert answer([*CONTEXT]) == "no"
    assert asyncio.run(check.protect("no", sample=case)(answer_later)(docs=[*CONTEXT])) == "no"


def test_an_error_of_the_function_is_its_own() -> None:
    def fails(context: list[str]) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guard(min={"faithfulness": 0.9}).protect("no")(fails)(CONTEXT)


def test_a_generator_can_not_be_protected() -> None:
    def stream() -> Iterator[str]:
        yield BAD

    class Streams:
        def __call__(self) -> Iterator[str]:
            yield BAD

    for function in (stream, functools.partial(stream), Streams()):
        with pytest.raises(ConfigError, match="is a generator"):
            guard(min={"faithfulness": 0.9}).protect("no")(function)


def test_what_it_quotes_can_not_steer_a_terminal() -> None:
    verdict = guard(min={"faithfulness": 0.9})(output="It has \x1b[2J 90 million inhabitants\u202e.", context=CONTEXT)
    assert "90 million" in verdict.explanation
    assert "\x1b" not in verdict.explanation
    assert "\u202e" not in verdict.explanation
    skipped = guard(min={declines: 1})(output="\x1b[2J\u202e")
    assert skipped.undefined == ("declines",)
    assert not {"\x1b", "\u202e"} & {*skipped.explanation}


def test_it_works_in_evalstones_own_loop_and_beside_other_threads() -> None:
    check = guard(min={"contains(expected=Paris)": 1}, timeout=5)
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(check(output=GOOD).passed)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min": {"faithfulness": 1.5}}, r"min of faithfulness must be in \[0, 1\]"),
        ({"min": {"hallucination": 0.5}}, r'use max=\{"hallucination": 0.5\}'),
        ({"min": {"faithfulness": 0}}, "every score reaches"),
        ({"max": {"hallucination": 1}}, "every score reaches"),
        ({}, "needs a scorer"),
        ({"min": ["faithfulness"]}, "min must be a table"),
        ({"min": {"contains(expected=a)": 0.5, "contains(expected='a')": 0.5}}, "two thresholds"),
        ({"min": {"faithfulness": 0.5}, "mode": "warn"}, "mode must be"),
        ({"min": {"faithfulness": 0.5}, "on_undefined": "skip"}, "on_undefined must be"),
        ({"min": {"faithfulness": 0.5}, "timeout": 0}, "timeout must be"),
        ({"min": {"faithfulness": 0.5}, "timeout": 1e300}, "timeout must be"),
        ({"min": {"faithfulness": 0.5}, "timeout": 2 * threading.TIMEOUT_MAX}, "timeout must be"),
        ({"min": {"faithfulness": 0.5}, "judge": "vllm/m(base_url=http://127.0.0.1:1)"}, "timeout="),
        ({"min": {"nope": 0.5}}, "nope"),
    ],
)
def test_a_guard_that_can_not_work_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        guard(**options)


def test_a_judge_over_the_network_is_taken_with_a_timeout_and_its_errors_are_no_scores() -> None:
    check = guard(min={"faithfulness": 0.5}, judge="vllm/m(base_url=http://127.0.0.1:1, retries=0)", timeout=0.5)
    assert isinstance(check, Guard)
    verdict = check(output=GOOD, context=CONTEXT)
    assert verdict.undefined == ("faithfulness",)
    assert verdict.blocked


def test_a_refused_key_is_no_score_and_the_other_scorers_count() -> None:
    with serving(lambda request, number: Response(401, {"error": {"message": "no such key"}})) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, api_key="k")
        check = guard(min={Sleeps(seconds=0.3): 0.5, "faithfulness": 0.5}, judge=judge, timeout=10)
        verdict = check(output=GOOD, context=CONTEXT)
    assert verdict.undefined == ("faithfulness",)
    assert verdict.records[0].value == 1.0
    assert "no score within" not in verdict.explanation


def test_a_code_scorer_needs_no_timeout_whatever_the_judge() -> None:
    judge = "vllm/m(base_url=http://127.0.0.1:1)"
    assert guard(min={"contains(expected=Paris)": 1}, judge=judge)(output=GOOD).passed


def test_fields_that_are_none_are_refused() -> None:
    check = guard(min={"faithfulness": 0.9})
    with pytest.raises(ConfigError, match="unknown sample field"):
        check(answer=GOOD)  # pyright: ignore[reportCallIssue]
    with pytest.raises(ConfigError, match="unknown sample field"):
        check({"answer": GOOD})
    with suppress(ConfigError):
        check(Sample(output=GOOD), output=GOOD)
        pytest.fail("both were taken")


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_guard_answers_where_the_process_can_start_no_thread(monkeypatch: pytest.MonkeyPatch, in_loop: bool) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("no thread")

    check = guard(min={"contains(expected='Paris')": 1}, timeout=20)
    monkeypatch.setattr(sync, "_threads", {})
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        verdict = asyncio.run(check.acheck(output=GOOD)) if in_loop else check(output=GOOD)
    assert verdict.blocked
    assert verdict.undefined == ("contains",)
    assert "no score: RuntimeError" in verdict.explanation
    assert check(output=GOOD).passed


ASKED = [
    {"role": "user", "content": "Is Rome old?"},
    {"role": "assistant", "content": "Rome is."},
    {"role": "user", "content": "And Paris?"},
]
ONE_READER = [
    "faithfulness",
    "contains(expected=Paris)",
    "not_contains(expected=Rome, text=all)",
    "no_tool_errors",
    "json_valid",
    "keyword_coverage",
]


def outcomes(records: Iterable[Record]) -> list[tuple[str, float | None]]:
    return [(type(record.outcome).__name__, record.value) for record in records]


@pytest.mark.parametrize(
    "fields",
    [
        {"input": "And Paris?", "output": GOOD, "context": [{"page_content": text} for text in CONTEXT]},
        {"input": "And Paris?", "output": GOOD, "context": str(CONTEXT)},
        {"input": ASKED, "output": [{"role": "assistant", "content": GOOD}], "context": CONTEXT},
        {"input": "And Paris?", "output": f'[{{"role": "assistant", "content": "{GOOD}"}}]', "context": CONTEXT},
        {"input": "How many?", "output": 2, "context": CONTEXT},
        {"input": "And Paris?", "output": {"answer": GOOD}, "context": CONTEXT},
        {"messages": [*ASKED, {"role": "assistant", "content": GOOD}], "context": CONTEXT},
    ],
    ids=["documents", "list as text", "messages", "messages as text", "number", "object", "conversation"],
)
def test_fields_are_read_as_evaluate_reads_them(fields: dict[str, Any]) -> None:
    run = evaluate([fields], ONE_READER, judge="lexical", ledger=None)
    check = guard(min=dict.fromkeys(ONE_READER, 0.5), timeout=20)
    assert outcomes(check(**fields).records) == outcomes(run.records)
    assert outcomes(check(fields).records) == outcomes(run.records)


def test_a_field_that_can_not_be_read_is_refused() -> None:
    with pytest.raises(DataError, match=r"^context .* 'nan'"):
        guard(min={"faithfulness": 0.9})(output=GOOD, context="nan")


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f'[{{"role": "assistant", "content": "{GOOD}"}}]',
        [{"role": "assistant", "content": "Rome is older."}, {"role": "assistant", "content": GOOD}],
        Answer(output=GOOD, context=["Rome is old."], metadata={"route": 1}),
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": BAD}}]},
    ],
    ids=["text", "messages as text", "messages", "answer", "completion"],
)
@pytest.mark.parametrize("asked", ["And Paris?", ASKED], ids=["question", "conversation"])
def test_a_protected_function_is_read_as_a_target(asked: Any, answer: Any) -> None:
    seen: list[GuardVerdict] = []

    def function(input: Any, context: Any) -> Any:
        return answer

    def target(*, input: str) -> Any:
        return answer

    row = {"input": asked, "context": [{"page_content": text} for text in CONTEXT]}
    guard(min=dict.fromkeys(ONE_READER, 0.5), mode="flag", timeout=20, on_verdict=seen.append).protect()(function)(
        **row
    )
    run = evaluate([row], ONE_READER, judge="lexical", target=target, ledger=None)
    assert outcomes(seen[0].records) == outcomes(run.records)


def test_the_duration_of_a_protected_function_is_that_of_the_answer() -> None:
    def duration(*, metadata: dict[str, Any]) -> float:
        return min(1.0, metadata["target"]["seconds"])

    seen: list[GuardVerdict] = []

    async def answer_later(input: str) -> str:
        await asyncio.sleep(0.1)
        return GOOD

    def answer(input: str) -> str:
        time.sleep(0.1)
        return GOOD

    check = guard(min={duration: 0.05}, mode="flag", on_verdict=seen.append)
    check.protect()(answer)("?")
    asyncio.run(check.protect()(answer_later)("?"))  # type: ignore[arg-type]
    assert [0.1 <= (verdict.records[0].value or 0) < 1 for verdict in seen] == [True, True]
