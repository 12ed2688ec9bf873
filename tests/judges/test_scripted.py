from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import evaluate, write_run
from evalstone._core.sync import run
from evalstone.errors import ConfigError, DataError, JudgeDeclined, JudgeError, ReplyError
from evalstone.judges import LoggingJudge, Panel, ReplayJudge, ScriptedJudge
from evalstone.judges.aligned import is_example
from evalstone.judges.base import Judge
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.scorers import Faithfulness, Hallucination
from evalstone.types import Record, Sample, WorkedExample
from evalstone.types.context_limits import ContextLimits
from tests.aligned import aligned, aligned_checker
from tests.fakes import claims, record_of, score_of, verdicts

ONE, TWO = ListClaims(text="one"), ListClaims(text="two")
VERIFY = VerifyClaims(claims=("a",), context=("p",))
SAMPLE = Sample(input="q", output="a and b", context=["p"])
REPLIES = {"list_claims": claims("a", "b"), "verify_claims": verdicts(("supported", [1]), "not_mentioned")}


def asked(judge: Judge, question: Question[Any]) -> JudgeAnswer[Any]:
    async def work() -> JudgeAnswer[Any]:
        return await judge.answer(question)

    return run(work())


def test_a_list_gives_its_replies_in_the_order_of_asking():
    judge = ScriptedJudge([claims("a"), claims("b")])
    assert asked(judge, ONE).value == ("a",)
    assert asked(judge, TWO).value == ("b",)
    assert judge.asked == [ONE, TWO]


def test_a_mapping_gives_the_reply_for_the_kind_of_question():
    judge = ScriptedJudge(
        {"list_claims": claims("a"), "verify_claims": [verdicts("supported"), verdicts("contradicted")]}
    )
    assert asked(judge, VERIFY).value[0].verdict == "supported"
    assert asked(judge, ONE).value == asked(judge, TWO).value == ("a",)
    assert asked(judge, VERIFY).value[0].verdict == "contradicted"


def test_a_function_sees_the_question():
    def script(question: Question[Any]) -> Any:
        assert isinstance(question, ListClaims)
        return claims(question.text.upper())

    assert asked(ScriptedJudge(script), ONE).value == ("ONE",)


def test_text_is_the_raw_reply_and_data_is_sent_as_json():
    question = ListClaims(text="é")
    answer = asked(ScriptedJudge(['```json\n{"claims": ["é"]}\n```']), question)
    assert answer.value == ("é",)
    assert answer.reply == '```json\n{"claims": ["é"]}\n```'
    assert asked(ScriptedJudge([claims("é")]), question).reply == '{"claims": ["\\u00e9"]}'


def test_a_reply_that_cannot_be_read_is_followed_by_the_next_one():
    judge = ScriptedJudge(["no json", '{"claims": 5}', claims("a")])
    answer = asked(judge, ONE)
    assert answer.value == ("a",)
    assert answer.usage.requests == 3
    assert judge.asked == [ONE]


def test_retries_end_and_the_last_error_tells_why():
    judge = ScriptedJudge(["first", "second", claims("never heard")], retries=1)
    with pytest.raises(ReplyError, match="no complete JSON") as raised:
        asked(judge, ONE)
    assert raised.value.reply == "second"


def test_no_verdict_at_all_to_the_end_is_an_error_of_the_reply():
    with pytest.raises(ReplyError, match="1 claim, 0 verdicts"):
        asked(ScriptedJudge(lambda _: {"verdicts": {}}, retries=2), VERIFY)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([claims("a")], "its 1 reply is used up"),
        ({"list_claims": [claims("a"), claims("b")], "other": "x"}, "its 2 replies are used up"),
        ({"other": "x", "verify_claims": "y"}, "it has replies to 'other' and 'verify_claims'"),
        ({}, "it has no replies"),
        ([], "it has no replies"),
    ],
)
def test_why_a_script_has_no_answer_is_said(script: Any, reason: str):
    judge = ScriptedJudge(script)

    def ask_until_none() -> None:
        for _ in range(3):
            asked(judge, ONE)

    with pytest.raises(JudgeError, match=f"^scripted .* list_claims: {reason}$"):
        ask_until_none()


def test_a_script_that_is_used_up_in_a_retry_gives_the_error_of_the_last_reply():
    with pytest.raises(ReplyError, match="empty"):
        asked(ScriptedJudge([" "]), ONE)


@pytest.mark.parametrize("script", [{}, {"verify_claims": "x"}, {"list_claims": None}, {"list_claims": []}, [], [None]])
def test_a_script_without_a_reply_has_no_answer(script: Any):
    with pytest.raises(JudgeError, match="no answer"):
        asked(ScriptedJudge(script), ONE)


def test_a_text_is_no_list_of_replies():
    with pytest.raises(ConfigError, match="a list of one"):
        ScriptedJudge('{"claims": []}')


def test_a_script_is_never_kept_in_a_ledger_and_says_who_it_is():
    judge = ScriptedJudge([], retries=2)
    assert judge.cacheable is False
    assert judge.identity == "scripted"
    assert repr(judge) == "ScriptedJudge(retries=2)"


def written(tmp_path: Path, *records: Record) -> Path:
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(record.to_dict()) + "\n" for record in records), encoding="utf-8")
    return file


def test_a_recorded_run_is_scored_again_without_the_judge(tmp_path: Path):
    record, _ = record_of(Faithfulness(), SAMPLE, REPLIES)
    replay = ReplayJudge.from_records(written(tmp_path, record))
    assert len(replay.calls) == 2

    async def ask(question: Question[Any]) -> Any:
        return (await replay.answer(question)).value

    async def scored(scorer: Any) -> Any:
        return await scorer.run(ask, SAMPLE)

    assert run(scored(Faithfulness())) == score_of(Faithfulness(), SAMPLE, REPLIES)
    assert run(scored(Hallucination(scale=10))) == score_of(Hallucination(scale=10), SAMPLE, REPLIES)


def test_a_question_that_was_not_recorded_cannot_be_answered(tmp_path: Path):
    replay = ReplayJudge.from_records(written(tmp_path, record_of(Faithfulness(), SAMPLE, REPLIES)[0]))
    with pytest.raises(JudgeDeclined, match="list_claims question"):
        asked(replay, TWO)


def test_what_was_asked_in_vain_is_not_replayed(tmp_path: Path):
    record, _ = record_of(Faithfulness(), SAMPLE, ["no json"])
    assert record.calls[0].reply == "no json"
    assert ReplayJudge.from_records(written(tmp_path, record)).calls == {}


def test_an_empty_answer_is_an_answer_and_is_replayed(tmp_path: Path):
    record, _ = record_of(Faithfulness(), SAMPLE, [claims()])
    replay = ReplayJudge.from_records(written(tmp_path, record))
    assert asked(replay, ListClaims(text="a and b", question="q")).value == ()


def test_a_recording_says_where_it_comes_from(tmp_path: Path):
    file = written(tmp_path)
    assert ReplayJudge.from_records(file).identity == f"replay({file})"
    assert ReplayJudge({}).identity == "replay"
    assert repr(ReplayJudge({})) == "ReplayJudge(0 answers, source='')"
    assert ReplayJudge.cacheable is False


STEP = {"fingerprint": "f", "reply": "r", "answer": 1}


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "",
        "[]",
        "null",
        "5",
        "{}",
        '{"calls": 5}',
        '{"calls": [5]}',
        '{"calls": [{}]}',
        json.dumps({"calls": [{**STEP, "fingerprint": ["f"]}]}),
        json.dumps({"calls": [{**STEP, "fingerprint": None}]}),
        json.dumps({"calls": [{**STEP, "reply": {"a": 1}}]}),
        json.dumps({"calls": [{**STEP, "detail": "x"}]}),
        json.dumps({"calls": [{**STEP, "members": None}]}),
        json.dumps({"calls": [{**STEP, "members": [5]}]}),
        json.dumps({"calls": [{**STEP, "members": [{"detail": [1]}]}]}),
        json.dumps({"calls": [{**STEP, "refused_settings": 5}]}),
        json.dumps({"calls": [STEP]})[:-3],
    ],
)
def test_a_file_that_is_broken_is_refused_with_the_line(tmp_path: Path, line: str):
    file = tmp_path / "records.jsonl"
    file.write_text(f"{json.dumps({'calls': [STEP]})}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"\.jsonl, line 2: not "):
        ReplayJudge.from_records(file)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        ReplayJudge.from_records(str(file))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"none.*: No such"):
        ReplayJudge.from_records(tmp_path / "none.jsonl")


def test_an_answer_without_a_raw_reply_is_replayed_from_its_data(tmp_path: Path):
    record, _ = record_of(Faithfulness(), SAMPLE, REPLIES)
    calls = tuple(dataclasses.replace(call, reply=None, probability=0.75) for call in record.calls)
    replay = ReplayJudge.from_records(written(tmp_path, dataclasses.replace(record, calls=calls)))
    assert [call["reply"] for call in replay.calls.values()] == [None, None]
    answer = asked(replay, ListClaims(text="a and b", question="q"))
    assert (answer.value, answer.probability, answer.reply) == (("a", "b"), 0.75, None)


def test_a_recording_of_a_judge_that_it_does_not_hold_is_refused(tmp_path: Path):
    file = written(tmp_path, record_of(Faithfulness(), SAMPLE, REPLIES)[0])
    assert len(ReplayJudge.from_records(file, judge="scripted").calls) == 2
    with pytest.raises(DataError, match="answers of 'openai/x'"):
        ReplayJudge.from_records(file, judge="openai/x")


def test_scripted_judges_may_have_names():
    judge = ScriptedJudge([claims("a")], name="ada")
    assert judge.identity == "ada"
    assert repr(judge).endswith("(retries=3, name='ada')")
    assert asked(judge, ONE).judge == "ada"


class Narrow(Judge):
    """A judge of the user's: nothing of its limits is in its identity."""

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        reply = verdicts("not_mentioned") if isinstance(question, VerifyClaims) else question.example()
        return JudgeAnswer(value=question.from_json(reply), judge=self.identity, reply=json.dumps(reply))

    @property
    def context_limits(self) -> ContextLimits:
        return ContextLimits(tokens=4000, items=2)


@pytest.mark.parametrize("kind", ["records", "log", "aligned"])
def test_long_questions_are_replayed_in_the_parts_that_were_asked(tmp_path: Path, kind: str):
    judge: Judge = Narrow()
    if kind == "log":
        judge = LoggingJudge(judge, tmp_path / "log.jsonl")
    elif kind == "aligned":  # its examples leave less room to the questions
        example = WorkedExample(inputs={"claims": ["a"], "context": ["b " * 1500]}, label="supported")
        judge = aligned(judge, "faithfulness", VERIFY, examples=(example,))
    long = Sample(input="q", output="a and b", context=[f"p{number} " * 400 for number in range(6)])
    made = evaluate([long], "faithfulness", judge=judge, ledger=None)
    assert len(made.records[0].calls) > 2
    file = tmp_path / "log.jsonl" if kind == "log" else write_run(made, tmp_path / "run") / "records.jsonl"
    replay = ReplayJudge.from_records(file)
    assert replay.context_limits == judge.context_limits
    again = evaluate([long], "faithfulness", judge=replay, ledger=None)
    assert again.records[0].outcome == made.records[0].outcome


def test_a_summary_that_is_of_no_run_says_nothing_of_the_records_beside_it(tmp_path: Path):
    file = written(tmp_path, record_of(Faithfulness(), SAMPLE, REPLIES)[0])
    (tmp_path / "summary.json").write_text('{"mean": 1}', encoding="utf-8")
    assert len(ReplayJudge.from_records(file).calls) == 2
    (tmp_path / "summary.json").write_text('{"format": "run/1"}', encoding="utf-8")
    with pytest.raises(DataError, match=r"summary\.json cannot be read as a run"):
        ReplayJudge.from_records(file)


def test_limits_in_a_log_that_are_none_are_refused_with_their_line(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    run(LoggingJudge(Narrow(), log).answer(VERIFY))
    line = json.loads(log.read_text(encoding="utf-8"))
    log.write_text(json.dumps({**line, "limits": {"tokens": "many"}}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"log\.jsonl, line 1: limits: tokens must be"):
        ReplayJudge.from_records(log)


def test_a_replay_of_an_aligned_judge_says_which_samples_are_its_examples(tmp_path: Path):
    """They would be counted in a calibration."""
    sample = Sample(input="q", output="a and b", context=["p"])
    judge = aligned_checker(Narrow(), sample)
    made = evaluate(
        [sample], "relevancy_check", judge=Panel(judge, ScriptedJudge([], name="other"), quorum=1), ledger=None
    )
    records = write_run(made, tmp_path / "run") / "records.jsonl"
    replayed = evaluate([sample], "relevancy_check", judge=ReplayJudge.from_records(records), ledger=None)
    assert [is_example(record) for record in (*made.records, *replayed.records)] == [True, True]
