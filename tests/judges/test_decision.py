"""Decision models as judges, alone and beside a judge that writes."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    Failed,
    GEval,
    Live,
    LLMClassifier,
    ReplayJudge,
    Run,
    Score,
    ScriptedJudge,
    calibrate,
    dry_run,
    evaluate,
    guard,
    parse_judge,
    score,
    write_run,
)
from evalstone.errors import ConfigError, JudgeDeclined, JudgeRefused
from evalstone.judges import Cascade, DecisionJudge, DecisionOrText, ModelJudge, Panel, SentenceJudge
from evalstone.questions import ClaimSupported, ListClaims
from evalstone.scorers import PerTurn, Pipeline, PromptStep
from evalstone.types.context_limits import ContextLimits
from tests.serving import Response, Server, serving

SAMPLES = [
    {"id": "a", "input": "When?", "output": "It was founded in 1921. It has 40 rooms.", "context": ["In 1921."]},
    {"id": "b", "input": "How much?", "output": "It is free.", "context": ["It costs 8 euros.", "It is open."]},
]


def decide(request: dict[str, Any], _: int) -> dict[str, Any]:
    """Give the first option of each question .75."""
    answers: dict[str, Any] = {}
    for name, question in request["questions"].items():
        if question["type"] == "noul":
            answers[name] = {"type": "noul", "noul": 0.75}
            continue
        criteria: Any = question["criteria"]
        options = [*map(str, range(len(criteria)))] if question["type"] == "score" else [*map(str, criteria)]
        rest = 0.25 / (len(options) - 1)
        probabilities = {option: 0.75 if not n else rest for n, option in enumerate(options)}
        answers[name] = {"type": question["type"], "probabilities": probabilities}
    return {"model": "jev-1", "answers": answers, "usage": {"input_tokens": 50, "output_tokens": 0}}


def base(server: Server) -> str:
    """The URL of a server as identities have it."""
    return server.url.removesuffix("/v1")


def run_on(server: Server, scorers: Any, ledger: Path | None = None, **settings: Any) -> Run:
    judge = f"systemone/jev({server.url}, prices=[0.1, 0])"
    return evaluate(SAMPLES, scorers, judge=settings.pop("judge", judge), ledger=ledger, **settings)


def test_a_run_asks_closed_questions_in_one_request_each_and_splits_sentences(tmp_path: Path) -> None:
    with serving(decide) as server:
        run = run_on(server, ["faithfulness", "fact_check", "context_precision", "answer_faithfulness"], tmp_path / "l")
        first = len(server.requests)
        again = run_on(
            server, ["faithfulness", "fact_check", "context_precision", "answer_faithfulness"], tmp_path / "l"
        )
        assert len(server.requests) == first
    # Two questions on all claims, three on one claim, two on passages, two grades.
    assert first == 9
    assert (run["faithfulness"].mean, run["fact_check"].mean, run["context_precision"].mean) == (1, 0.75, 1)
    assert run["answer_faithfulness"].mean == pytest.approx(0.0625 * 2.5)
    assert run.cost == pytest.approx(9 * 50 * 0.1e-6)
    assert again.cost == 0
    assert [record.outcome for record in again] == [record.outcome for record in run]
    (call, verified) = next(iter(run)).calls
    assert (call.members[0].judge, verified.members[0].judge) == ("sentences@1", f"systemone/jev({base(server)})")
    assert verified.probability == 0.75
    assert verified.alternatives is not None
    assert verified.alternatives["2.verdict=supported"] == 0.75
    cached = next(iter(again)).calls[1].members[0]
    assert (cached.source, cached.alternatives, cached.detail) == (
        "cached",
        verified.alternatives,
        verified.members[0].detail,
    )


def test_stored_answers_are_replayed(tmp_path: Path) -> None:
    with serving(decide) as server:
        scorers, file = ["faithfulness", "answer_faithfulness"], tmp_path / "out" / "records.jsonl"
        run = run_on(server, scorers)
        write_run(run, tmp_path / "out")
        replayed = run_on(server, scorers, judge=ReplayJudge.from_records(file))
        member = ReplayJudge.from_records(file, judge=f"systemone/jev({base(server)})")
        alone = run_on(server, "answer_faithfulness", judge=member)
    assert [record.outcome for record in replayed] == [record.outcome for record in run]
    assert alone["answer_faithfulness"].mean == run["answer_faithfulness"].mean


@pytest.mark.parametrize(
    ("spec", "identity"),
    [
        ("typesafe/jev-latest", "decision(typesafe/jev-latest, text=sentences@1)"),
        ("openai-decisions/gpt-6-luna", "decision(openai-decisions/gpt-6-luna, text=sentences@1)"),
        (
            "decision(systemone/x(http://h:1), text=openai/gpt-5.1)",
            "decision(systemone/x(http://h:1), text=openai/gpt-5.1)",
        ),
        ("decision(typesafe/jev-1.14, text=lexical)", "decision(typesafe/jev-1.14, text=lexical@7)"),
        (
            "cascade(typesafe/jev-latest, openai/gpt-5.1, threshold=0.8)",
            "cascade(decision(typesafe/jev-latest, text=sentences@1), openai/gpt-5.1, threshold=0.8)",
        ),
        ("sentences", "sentences@1"),
    ],
)
def test_a_name_is_parsed_and_printed(spec: str, identity: str) -> None:
    judge = parse_judge(spec)
    assert judge.identity == identity
    assert parse_judge(judge.identity) == judge
    assert pickle.loads(pickle.dumps(judge)) == judge


def test_a_table_is_parsed() -> None:
    judge = parse_judge({"decision": {"model": "systemone/x", "base_url": "http://h:1"}, "text": "openai/gpt-5.1"})
    assert judge == DecisionOrText(DecisionJudge("systemone/x", base_url="http://h:1"), text="openai/gpt-5.1")
    alone = parse_judge({"model": "typesafe/jev-latest", "context_window": 1000, "requests_per_minute": 5})
    assert isinstance(alone, DecisionOrText)
    assert alone.decides == DecisionJudge("typesafe/jev-latest", context_window=1000)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("decision(openai/gpt-5.1)", "such as onnx:models/nli; openai/gpt-5.1 is neither"),
        ("decision(typesafe/jev, systemone/x)", "decision takes one judge, not 2"),
        ("typesafe/jev(temperature=0)", "typesafe/jev: unknown setting 'temperature'"),
        ("sentences(x=1)", "the judge sentences has no settings, but got x"),
        ("sentences@9", "unknown judge 'sentences@9'"),
    ],
)
def test_a_wrong_name_is_refused(spec: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_judge(spec)
    assert problem in str(caught.value)


def test_a_model_that_decides_does_not_chat_and_one_that_chats_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TYPESAFE_API_KEY", "k")
    with pytest.raises(ConfigError, match="typesafe/jev-latest doesn't chat: it is a decision model"):
        ModelJudge("typesafe/jev-latest").check()
    with pytest.raises(ConfigError, match=r"openai/gpt-5\.1 writes text: it is no decision model"):
        DecisionJudge("openai/gpt-5.1").check()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(
        ConfigError, match=r"openai-decisions/gpt-5\.1 doesn't decide: by its listed prices, it only chats"
    ):
        DecisionJudge("openai-decisions/gpt-5.1").check()
    with pytest.raises(ConfigError, match=r"typesafe/gpt-5\.1 doesn't decide: by its listed prices, it only chats"):
        DecisionJudge("typesafe/gpt-5.1").check()
    # One that both does, one that isn't listed yet, and what the user knows better.
    for model in ("gpt-6-luna", "gpt-99"):
        DecisionJudge(f"openai-decisions/{model}").check()
    DecisionJudge("openai-decisions/gpt-5.1", prices=(1.0, 0.0)).check()
    DecisionJudge("openai-decisions/gpt-5.1", base_url="http://127.0.0.1:9").check()
    for model in ("jev-latest", "jev-99"):
        DecisionJudge(f"typesafe/{model}").check()
    monkeypatch.delenv("TYPESAFE_API_KEY")
    with pytest.raises(ConfigError, match="needs a key: set the environment variable TYPESAFE_API_KEY"):
        parse_judge("typesafe/jev-latest").check()


def test_a_scorer_that_needs_text_is_refused_before_the_run() -> None:
    with serving(decide) as server:
        with pytest.raises(ConfigError) as caught:
            run_on(server, ["faithfulness", "toxicity"])
        judge = f"systemone/jev({base(server)})"
        assert str(caught.value) == (
            f"toxicity asks find_toxicity, and decision({judge}, text=sentences@1) writes no text; name a judge that "
            f"does, as in decision({judge}, text=openai/gpt-5.1)"
        )
        with pytest.raises(ConfigError, match=r"faithfulness asks list_claims, and systemone/jev.* writes no text"):
            run_on(server, "faithfulness", judge=DecisionJudge("systemone/jev", base_url=server.url))
        assert not server.requests
        many = LLMClassifier("Which?", choices={f"w{n}": n / 300 for n in range(300)}, name="which")
        problem = (
            r"^which asks choose with 300 options, and systemone/jev.* takes at most 255; name a judge that writes"
        )
        with pytest.raises(ConfigError, match=problem):
            run_on(server, many)
        assert not server.requests
        # Steps of one's own need not be written.
        with pytest.raises(ConfigError, match="asks write_steps"):
            run_on(server, GEval("Is it polite?", name="polite"))
        run = run_on(server, GEval("Is it polite?", name="polite", steps=["Look."]))
        assert run["polite"].mean == 0


NOBODY = "systemone/jev(http://127.0.0.1:9)"
DOORS: dict[str, Callable[[], object]] = {
    "score": lambda: score("toxicity", output="a", judge=NOBODY, ledger=None),
    "live": lambda: Live("toxicity", judge=NOBODY, process=False),
    "guard": lambda: guard(max={"toxicity": 0.5}, judge=NOBODY, timeout=1),
    "dry run": lambda: dry_run([{"output": "a"}], "toxicity", judge=NOBODY),
    "calibrate": lambda: calibrate([{"output": "a", "label": 1}], "toxicity", judge=NOBODY, ledger=None),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_door_refuses_a_scorer_that_needs_text(door: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match=r"^toxicity asks find_toxicity, and decision\(systemone/jev.*writes no text"):
        door()


def test_a_quarter_of_the_window_is_for_the_decisions() -> None:
    judge = DecisionJudge("systemone/jev", context_window=4000)
    assert judge.context_limits == ContextLimits(3000, 2, longest=3000, window=4000)


def test_a_pipeline_is_refused_for_the_steps_that_need_text() -> None:
    short = PromptStep("Is this short? {{output}}", answer=bool)
    told = PromptStep("What is wrong with it? {{output}}")
    graded = PromptStep("Grade it: {{output}}")

    def by_length(so_far: Any) -> float:
        return float(so_far.analyze)

    with serving(decide) as server:
        decides = f"systemone/jev({server.url})"
        for scorer, asks in (
            (Pipeline(analyze=told, score=by_length, name="p"), "answer_as"),
            (Pipeline(analyze=short, score=graded, name="p"), "give_number"),
        ):
            for each in (scorer, PerTurn(scorer)):
                with pytest.raises(ConfigError, match=f"asks {asks}, and decision.* writes no text"):
                    run_on(server, each)
        assert not server.requests
        run = run_on(server, Pipeline(analyze=short, score=by_length, name="p"))
        assert run["p"].mean == 1
        # A step with a judge of its own asks the run's judge nothing.
        writes = ScriptedJudge(lambda _: {"reason": "r", "score": 0.5})
        mixed = Pipeline(analyze=short, score=replace(graded, judge=writes), name="p")
        assert run_on(server, mixed)["p"].mean == 0.5
        decided = PromptStep("What is wrong with it? {{output}}", judge=decides)
        with pytest.raises(ConfigError, match="p asks answer_as"):
            run_on(server, Pipeline(analyze=decided, score=by_length, name="p"), judge=writes)


def test_the_two_ways_to_write_a_base_url_are_one_judge() -> None:
    judges = [parse_judge(f"systemone/x(http://h:1{end})") for end in ("", "/", "/v1", "/v1/")]
    assert {judge.identity for judge in judges} == {"decision(systemone/x(http://h:1), text=sentences@1)"}
    usual = parse_judge("systemone/x(http://127.0.0.1:8080/v1)")
    assert usual.identity == parse_judge("systemone/x").identity
    with pytest.raises(ConfigError, match="appears twice in the panel"):
        Panel(*judges[1:3])


def test_a_second_judge_answers_what_asks_for_text() -> None:
    writes = ScriptedJudge({"list_claims": '{"claims": ["It is free."]}'})
    with serving(decide) as server:
        judge = DecisionOrText(DecisionJudge("systemone/jev", base_url=server.url), text=writes)
        run = evaluate(SAMPLES[1:], "faithfulness", judge=judge, ledger=None)
    (record,) = run
    assert isinstance(record.outcome, Score)
    assert [call.members[0].judge for call in record.calls] == [writes.identity, f"systemone/jev({base(server)})"]
    assert [(call.detail or {})["by"] for call in record.calls] == [call.members[0].judge for call in record.calls]


def test_open_questions_to_a_decision_model_alone_are_declined() -> None:
    judge = DecisionJudge("systemone/jev", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(JudgeDeclined, match="writes no text, so it can't answer list_claims"):
        asyncio.run(judge.answer(ListClaims(text="a")))
    with pytest.raises(JudgeDeclined, match="only splits texts into sentences; it can't answer claim_supported"):
        asyncio.run(SentenceJudge().answer(ClaimSupported(claim="a", context=("b",))))


def test_an_answer_that_is_missing_fails_its_sample_and_is_paid_once() -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        response = decide(request, number)
        del response["answers"][next(reversed(request["questions"]))]
        return response

    with serving(behaviour) as server:
        run = run_on(server, "faithfulness")
    assert (run["faithfulness"].n_failed, len(server.requests)) == (2, 2)
    assert run.cost == pytest.approx(2 * 50 * 0.1e-6)
    outcome = next(iter(run)).outcome
    assert isinstance(outcome, Failed)
    assert "there is no answer to verdict_2" in outcome.error


def test_a_wrong_key_ends_the_run() -> None:
    refused = pytest.raises(JudgeRefused, match="no key was sent")
    with serving(lambda request, number: Response(401, {"error": "bad key"})) as server, refused:
        run_on(server, "fact_check")


def test_a_long_state_is_split_by_the_window() -> None:
    long = [
        {"id": "a", "output": "It is free.", "context": [f"Passage {n} says nothing at all." * 20 for n in range(40)]}
    ]
    with serving(decide) as server:
        judge = f"systemone/jev({server.url}, context_window=4000)"
        run = evaluate(long, "fact_check", judge=judge, ledger=None)
    assert run["fact_check"].mean == 0.75
    assert len(server.requests) > 1


@pytest.mark.parametrize(
    "refusal",
    [
        Response(400, {"error": "max_tokens_exceeded"}),
        Response(422, {"error": {"code": "max_tokens_exceeded", "message": "41000 tokens"}}),
        Response(413, {"error": "too large"}),
        Response(400, {"error": {"message": "The state is too long."}}),
    ],
    ids=lambda refusal: str(refusal.body),
)
def test_a_state_that_the_server_refuses_as_too_long_is_split(refusal: Response) -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        return refusal if len(str(request["state"])) > 8000 else decide(request, number)

    passages = [f"Passage {n} says nothing at all." * 20 for n in range(40)]
    with serving(behaviour) as server:
        judge = f"systemone/jev({server.url})"
        run = evaluate([{"output": "It is free.", "context": passages}], "fact_check", judge=judge, ledger=None)
    assert run["fact_check"].mean == 0.75
    asked = [set(request["state"]["passages"].values()) for request in server.requests]
    assert set().union(*(each for each in asked if len(each) < 13)) == set(passages)


def test_a_dry_run_estimates_the_state_and_the_decisions_and_no_reply() -> None:
    estimate = dry_run(SAMPLES, "fact_check", judge="systemone/jev(http://127.0.0.1:9, prices=[1, 1000])")
    (judge,) = [each for each in estimate.judges if each.judge.startswith("systemone")]
    assert judge.calls == 3
    assert 0.0005 < (judge.cost or 0) < 0.0015


def test_a_budget_stops_decisions() -> None:
    with serving(decide) as server:
        judge = f"systemone/jev({server.url}, prices=[1, 0])"
        run = run_on(server, "fact_check", judge=judge, budget=0.00035, concurrency=1)
    assert len(server.requests) == 1
    assert not run.complete


def test_a_cascade_keeps_what_is_probable_enough_and_asks_for_the_other_items() -> None:
    def behaviour(request: dict[str, Any], _: int) -> Any:
        shares = {"verdict_1": (0.9, 0.05, 0.05), "verdict_2": (0.4, 0.3, 0.3)}
        answers = {
            name: {"type": "choice", "probabilities": dict(zip(question["criteria"], shares[name], strict=True))}
            for name, question in request["questions"].items()
        }
        return {"model": "m", "answers": answers, "usage": {}}

    verdict = '{"verdicts": {"1": {"reason": "r", "passages": [1], "verdict": "contradicted"}}}'
    listed = '{"claims": ["It was founded in 1921.", "It has 40 rooms."]}'
    # A list has no probability, so the second judge is asked for it.
    second = ScriptedJudge({"list_claims": listed, "verify_claims": verdict})
    with serving(behaviour) as server:
        judge = Cascade(f"systemone/jev({server.url})", second, threshold=0.8)
        run = evaluate(SAMPLES[:1], "faithfulness", judge=judge, ledger=None)
    (record,) = run
    assert isinstance(record.outcome, Score)
    assert record.outcome.value == 0.5
    assert (record.calls[-1].detail or {})["items"] == [2]


def test_a_panel_votes_with_probabilities() -> None:
    with serving(decide) as server:
        judge = Panel(f"systemone/jev({server.url})", "lexical", vote="mean")
        run = evaluate(SAMPLES, "fact_check", judge=judge, ledger=None)
    assert all(isinstance(record.outcome, Score) for record in run)


def unsure(request: dict[str, Any], _: int) -> dict[str, Any]:
    """Like `decide`, and say yes or no with .6."""
    made = decide(request, 0)
    for answer in made["answers"].values():
        if "noul" in answer:
            answer["noul"] = 0.6
    return made


def test_a_cascade_keeps_the_sentences_of_a_decision_model() -> None:
    """The fallback is asked only about what the decision model is unsure of: no call of it lists sentences again."""
    with serving(unsure) as server:
        first = f"systemone/jev({server.url}, prices=[0.1, 0])"
        dear = ScriptedJudge(lambda _: {"reason": "It says so.", "verdict": "no"}, name="dear")
        cascade = Cascade(first, dear, threshold=0.7)
        run = run_on(server, ["faithfulness", "fact_check"], judge=cascade)
        most = dry_run(SAMPLES, ["faithfulness", "fact_check"], judge=cascade, ledger=None)
    dear_calls = [step for record in run for step in record.calls for call in step.members if call.judge == "dear"]
    assert [call.question for call in dear_calls] == ["claim_supported"] * 3  # sentences
    told = run.judge_stats[cascade.identity]
    assert (told["questions"], told["escalated"]) == (2 + 3, 3)  # lists aren't counted
    assert {judge.judge: judge.calls for judge in most.judges}["dear"] == 2 + 3
