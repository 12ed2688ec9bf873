"""Questions that are longer than the judge's context window: asked in parts, or refused before anything is sent."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pytest

from evalstone import (
    Failed,
    ModelJudge,
    Panel,
    Record,
    ReplayJudge,
    Sample,
    Score,
    Scorer,
    evaluate,
    write_run,
)
from evalstone._core.prompts import Prompt
from evalstone.errors import PromptTooLong, QuestionTooLong
from evalstone.judges.base import Judge
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Ask, Question
from evalstone.questions.grade import GradeGrounding
from evalstone.questions.items import VerdictPerItem
from evalstone.questions.markers import Subject, WorstFirst, YesNo
from evalstone.run.circuit_breaker import FAILURE_LIMIT
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.run.session import AskScope, Session
from evalstone.scorers.registry import SCORERS
from evalstone.types.context_limits import ContextLimits
from tests.batch_serving import BatchServer
from tests.run.batch_runs import Call
from tests.scorers.variants import FULL
from tests.serving import Response, Server, asked_in, completion, filled, serving

A = TypeVar("A")

WINDOW = 4096
SENTENCES = [
    f"Museum {n} in Aarhus opened on 4 May 1921, and {n} visitors paid two crowns each for it. " for n in range(240)
]
LONG_CONTEXT = [f"Passage {n}: {''.join(SENTENCES[n * 6 : n * 6 + 6])}" for n in range(40)]
LONG_TEXT = "".join(SENTENCES[:120])
JUDGED = sorted(name for name, kind in SCORERS.items() if kind.questions)


def tokens(text: str) -> int:
    """A tokenizer of the worst kind: four letters or one sign are a token."""
    return len(re.findall(r"[^\W\d]{1,4}|\d|[^\w\s]", text))


def refusing(request: dict[str, Any], number: int) -> Any:
    """Answer as a server with a small window does: a prompt that leaves no room for the reply is refused."""
    size = sum(tokens(message["content"]) for message in request["messages"])
    if size >= WINDOW:
        message = f"request ({size} tokens) exceeds the available context size ({WINDOW} tokens), try increasing it"
        error = {"code": 400, "message": message, "type": "exceed_context_size_error", "n_ctx": WINDOW}
        return Response(400, {"error": error})
    schema = json.loads(json.dumps(request["response_format"]["json_schema"]["schema"]).replace('"supported", ', ""))
    return completion(json.dumps(filled(schema, asked_in(request))))


def sample_with(**fields: Any) -> Sample:
    values: dict[str, Any] = {"id": "s", **FULL, **fields}
    return Sample(**values)


def judged(scorer: Any, **long: Any) -> tuple[Record, Server]:
    with serving(refusing) as server:
        judge = ModelJudge("vllm/mine", base_url=server.url, context_window=WINDOW, retries=0)
        run = evaluate([sample_with(**long)], [scorer], judge=judge, ledger=None)
    return run.records[0], server


def refused(server: Server) -> list[int]:
    return [n for n, request in enumerate(server.requests) if isinstance(refusing(request, n), Response)]


@pytest.mark.parametrize("scorer", JUDGED)
@pytest.mark.parametrize("field", ["context", "output", "input", "reference"])
def test_no_scorer_sends_a_prompt_that_is_longer_than_the_window(scorer: str, field: str) -> None:
    record, server = judged(scorer, **{field: LONG_CONTEXT if field == "context" else LONG_TEXT})
    assert refused(server) == []
    if isinstance(record.outcome, Failed) and "context_window" in record.outcome.error:
        assert f"(context_window {WINDOW:,}, less the reply)" in record.outcome.error


@pytest.mark.parametrize(
    "scorer",
    [
        "context_position",
        "context_precision",
        "context_recall",
        "context_relevance",
        "context_statement_relevancy",
        "context_usage",
        "fact_check",
        "faithfulness",
        "hallucination",
    ],
)
def test_long_passages_are_read_in_parts(scorer: str) -> None:
    record, server = judged(scorer, context=LONG_CONTEXT)
    assert len(server.requests) > 3
    assert "context_window" not in getattr(record.outcome, "error", "")
    seen = "".join(message["content"] for request in server.requests for message in request["messages"])
    assert all(f"Passage {number}: " in seen for number in range(40))


@pytest.mark.parametrize(
    "scorer", ["answer_relevancy", "bias", "factual_correctness", "faithfulness", "summarization", "toxicity"]
)
def test_a_long_text_is_read_in_parts(scorer: str) -> None:
    record, server = judged(scorer, **{"input" if scorer == "summarization" else "output": LONG_TEXT})
    assert len(server.requests) > 3
    assert "context_window" not in getattr(record.outcome, "error", "")


@pytest.mark.parametrize(
    ("scorer", "advice"),
    [
        ("answer_faithfulness", "faithfulness, which reads passages in parts"),
        ("relevancy_check", "faithfulness and answer_relevancy, which read long texts in parts"),
    ],
)
def test_a_judgment_on_the_whole_is_refused_before_anything_is_sent(scorer: str, advice: str) -> None:
    record, server = judged(scorer, context=LONG_CONTEXT)
    assert server.requests == []
    assert isinstance(record.outcome, Failed)
    assert re.search(r"[\d,]+ tokens, .* 3,072 \(context_window 4,096, ", record.outcome.error)
    assert record.outcome.error.endswith(f"or use {advice}")
    assert record.calls == ()


def test_a_server_that_refuses_a_prompt_teaches_its_window() -> None:
    with serving(refusing) as server:
        judge = ModelJudge("vllm/mine", base_url=server.url, retries=0)
        run = evaluate(samples(6), ["context_relevance"], judge=judge, ledger=None, concurrency=1)
    assert all(record.value is not None for record in run)
    assert 0 < len(refused(server)) <= 4


@pytest.mark.parametrize(("max_tokens", "sizes"), [(2000, 1), (3000, 8)])
def test_a_window_that_is_learned_leaves_room_for_the_reply_that_is_asked_for(max_tokens: int, sizes: int) -> None:
    refusals: list[int] = []

    def reply(request: dict[str, Any], number: int) -> Any:
        size = sum(tokens(message["content"]) for message in request["messages"]) + request["max_tokens"]
        if size > WINDOW:
            refusals.append(size)
            return Response(400, {"error": {"message": f"maximum context length is {WINDOW} tokens, not {size}"}})
        return refusing(request, number)

    with serving(reply) as server:
        judge = ModelJudge("vllm/mine", base_url=server.url, max_tokens=max_tokens, retries=0)
        run = evaluate([sample_with(context=LONG_CONTEXT)], "fact_check", judge=judge, ledger=None, concurrency=1)
    assert run["fact_check"].n_score == 1
    assert len(set(refusals)) <= sizes


class Windowed(Judge, eq=False, kw_only=False):
    """Answers by example, and refuses a prompt of more tokens than it has; `asked` are the sizes of all prompts."""

    size: int
    named: int | None
    name: str = "windowed"
    asked: list[int] = field(default_factory=list[int])

    @property
    def identity(self) -> str:
        return self.name

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        size = sum(map(tokens, question.render()))
        self.asked.append(size)
        await asyncio.sleep(0)
        if size > self.size:
            raise PromptTooLong(f"{size} tokens do not fit", window=self.named)
        return JudgeAnswer(value=question.parse(json.dumps(question.example())), judge=self.name)

    @property
    def refused(self) -> int:
        return sum(size > self.size for size in self.asked)


def samples(count: int) -> list[Sample]:
    return [sample_with(id=str(n), input=f"Question {n}?", context=[str(n), *LONG_CONTEXT]) for n in range(count)]


@pytest.mark.parametrize("named", [2_000, 8_000, None])
def test_a_window_that_an_endpoint_names_or_has_is_learned_once(named: int | None) -> None:
    judge = Windowed(2_000, named)
    run = evaluate(samples(12), ["context_relevance"], judge=judge, ledger=None, concurrency=1)
    assert all(record.value is not None for record in run)
    assert judge.refused < 5
    assert run.records[11].calls[0].answer is not None


def test_what_is_learned_leaves_everything_else_as_it_was() -> None:
    class Whole(Windowed):
        @property
        def context_limits(self) -> ContextLimits:
            return ContextLimits(items=7, whole=True)

    judge = Whole(2_000, 2_000)
    session = Session(judge)
    question = GradeGrounding(answer="It is.", context=tuple(LONG_CONTEXT))

    async def ask() -> None:
        with pytest.raises(PromptTooLong):
            await AskScope(session)(question)
        with pytest.raises(QuestionTooLong, match="raise context_window"):
            await AskScope(session)(question)

    asyncio.run(ask())
    assert session.limits_of(judge) == ContextLimits(1_500, 6, whole=True, longest=1_500, window=2_000)


def test_many_prompts_that_are_refused_at_once_do_not_end_the_run() -> None:
    judge = Windowed(2_000, 2_000)
    run = evaluate(samples(40), ["context_relevance"], judge=judge, ledger=None, concurrency=40)
    assert all(record.value is not None for record in run)
    assert FAILURE_LIMIT < judge.refused <= 80


def test_a_question_that_can_not_be_divided_fails_with_the_endpoint_s_words_and_the_next_is_not_sent() -> None:
    judge = Windowed(2_000, 2_000)
    run = evaluate(samples(8), ["answer_faithfulness"], judge=judge, ledger=None, concurrency=1)
    errors = [record.outcome.error for record in run if isinstance(record.outcome, Failed)]
    assert "do not fit" in errors[0]
    assert all("grade_grounding: the " in error for error in errors[4:])
    assert len(judge.asked) < 4


def test_a_panel_asks_in_parts_that_each_of_its_members_takes() -> None:
    small, large = Windowed(2_000, 2_000, "small"), Windowed(10**6, None, "large")
    run = evaluate(samples(8), ["context_relevance"], judge=Panel(small, large), ledger=None, concurrency=1)
    assert all(record.value is not None for record in run)
    assert small.refused <= 4
    assert len(large.asked) == len(small.asked)


@dataclass(frozen=True)
class Mention:
    """Whether one name is mentioned."""

    name: Annotated[str, Subject()]
    mentioned: Annotated[bool, YesNo(), WorstFirst()]
    reason: str = ""


FIND_MENTIONS = Prompt("Say for each name whether the text mentions it.", "{{names}}\n{{text}}")


class FindMentions(VerdictPerItem[Mention]):
    """For each name: does the text mention it?"""

    kind = "find_mentions"
    items = "names"
    names: tuple[str, ...]
    text: str
    prompt: Prompt = FIND_MENTIONS


class Mentions(Scorer):
    """The share of 60 names that the answer mentions."""

    name = "mentions"
    questions = (FindMentions,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        found = await ask(FindMentions(names=tuple(f"Name {n}" for n in range(60)), text=output))
        assert [one.name for one in found] == [f"Name {n}" for n in range(60)]
        return Score(sum(one.mentioned for one in found) / len(found))


@pytest.mark.filterwarnings("error")
def test_a_question_of_one_s_own_is_asked_in_parts_too() -> None:
    record, server = judged(Mentions())
    assert record.value is not None
    assert len(server.requests) == 5


def test_a_dry_run_counts_the_parts() -> None:
    judge = ModelJudge("vllm/mine", base_url="http://127.0.0.1:9/v1", context_window=WINDOW, prices=(1.0, 1.0))
    sample = sample_with(context=LONG_CONTEXT)
    names = ["context_precision", "context_relevance", "answer_faithfulness"]
    estimated = asyncio.run(estimate(plan_for([sample], names, judge=judge)))
    precision, relevance, grade = estimated.scorers
    _, server = judged("context_precision", context=LONG_CONTEXT)
    assert precision.asked == len(server.requests) > 3
    assert relevance.asked > 3
    assert (grade.asked, grade.n_failed) == (0, 1)


def test_a_recording_is_replayed_in_the_same_parts(tmp_path: Path) -> None:
    with serving(refusing) as server:
        judge = ModelJudge("vllm/mine", base_url=server.url, context_window=WINDOW, max_tokens=800, retries=0)
        names = ["context_precision", "faithfulness"]
        run = evaluate(samples(1), names, judge=judge, ledger=None)
    write_run(run, tmp_path)
    replay = ReplayJudge.from_records(tmp_path / "records.jsonl")
    again = evaluate(samples(1), names, judge=replay, ledger=None)
    assert [record.outcome for record in again] == [record.outcome for record in run]


def test_a_batch_has_the_parts_of_a_question(server: BatchServer, run: Call) -> None:
    settings = {"context_window": WINDOW}
    rounds = [run("context_precision", samples=samples(1), settings=settings) for _ in range(2)]
    assert [each.complete for each in rounds] == [False, True]
    assert [len(batch.requests) > 3 for batch in server.batches] == [True]
