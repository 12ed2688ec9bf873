"""Values that the ledger's database refuses: a sample fails, and keeps no other one waiting."""

from __future__ import annotations

import json
import secrets
from decimal import Decimal
from typing import Any

import pytest

from evalstone import JudgeAnswer, Record, Sample, Score, Scorer
from evalstone.errors import ConfigError
from evalstone.judges import Judge
from evalstone.ledger.store import Ledger
from evalstone.live import sender
from evalstone.live.frames import LONGEST_NAME
from evalstone.types import Failed, Usage
from tests.live.conftest import Start
from tests.live.test_live import SAMPLE, answered, found

LONG = 100_000
"""Characters of a body or a reply that the ledgers of these tests refuse."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(sender, "MAX_PAUSE", 0.05)


def limit(url: str, table: str, column: str) -> None:
    """Let a ledger refuse what is long, as every database does with what is long enough."""
    if url.startswith("sqlite"):
        refuse = f"WHEN length(new.{column}) > {LONG} BEGIN SELECT RAISE(ABORT, 'too long'); END"
        statements = [
            f"CREATE TRIGGER {event}_long BEFORE {event} ON {table} {refuse}" for event in ("INSERT", "UPDATE")
        ]
    else:
        statements = [f"ALTER TABLE {table} ADD CONSTRAINT short CHECK (length({column}) <= {LONG})"]
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        for statement in statements:
            connection.execute(statement)


def wordy(output: str) -> Score:
    return Score(1.0, evidence="x" * (2 * LONG if "long" in output else 1))


class OddJudge(Judge):
    """Says yes to everything, with these numbers; what is asked about "long" it answers at length."""

    numbers: Any = ()

    @property
    def identity(self) -> str:
        return "odd/judge"

    def price(self, usage: Usage) -> float | None:
        return 1.0

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        value = question.parse(json.dumps(question.example()))
        reply = "y" * (2 * LONG if "long" in str(question) else 1)
        return JudgeAnswer(value=value, judge=self.identity, reply=reply, **dict(self.numbers))


@pytest.mark.parametrize("trace", ["abc", ["abc"], 5, {}, None])
def test_metadata_whose_trace_is_none_is_metadata(start: Start, trace: object) -> None:
    live = start()
    live.submit(**SAMPLE, metadata={"trace": trace})
    live.submit(**answered(1))
    assert [row.state for row in found(live)] == ["score"] * 2


def test_names_that_are_too_long_for_an_index_are_cut(start: Start, url: str) -> None:
    name = secrets.token_hex(5000)  # which no database compresses
    live = start(ledger=url)
    live.submit(**SAMPLE, metadata={"trace": dict.fromkeys(("entity", "span_id", "response_id"), name)})
    live.submit(**answered(1))
    (row, other) = found(live)
    assert {row.entity, row.span, row.response} == {name[:LONGEST_NAME]}
    assert (row.state, other.state) == ("score", "score")


class Wordy(Scorer):
    """Right."""

    name = "own_wordy"
    one: str = ""
    two: str = ""
    three: str = ""
    four: str = ""
    five: str = ""
    six: str = ""

    def score(self, *, output: str) -> Score:
        return Score(1.0)


def wordy_scorer(length: int) -> Wordy:
    """A scorer with a long signature."""
    one, two, three, four, five, six = (secrets.token_hex(length // 2) for _ in range(6))
    return Wordy(one=one, two=two, three=three, four=four, five=five, six=six)


def wide(length: int) -> str:
    """Random text of four bytes a character, which no database compresses."""
    return "".join(chr(0x20000 + secrets.randbelow(0xA000)) for _ in range(length))


def test_the_longest_names_and_signatures_fit_into_an_index(start: Start, url: str) -> None:
    long, stream = secrets.token_hex(5000), wide(LONGEST_NAME)
    live = start([f"contains(expected={long})", wordy_scorer(140)], ledger=url, stream=stream)
    assert live.submit(**SAMPLE, entity=wide(LONGEST_NAME))
    contained, right = sorted(found(live), key=lambda row: row.signature)
    assert (contained.value, right.value) == (0.0, 1.0)
    assert contained.signature.startswith(f"contains(expected={long[:40]}…")
    with pytest.raises(ConfigError, match=r"own_wordy: its parameters are too long.* 1,\d\d\d bytes"):
        start([wordy_scorer(198)], ledger=url)


@pytest.mark.parametrize(
    "numbers",
    [
        (("cost", Decimal("0.1")),),
        (("usage", Usage(10**12, 1)),),
        (("usage", Usage(1, 10**30)),),
        (("usage", Usage(1.5, 1)),),  # pyright: ignore[reportArgumentType]
    ],
)
def test_numbers_of_a_judge_that_can_not_be_stored_are_a_failed_score(start: Start, url: str, numbers: Any) -> None:
    live = start("faithfulness", OddJudge(numbers=numbers), ledger=url)
    live.submit(**answered(1))
    (row,) = found(live)
    assert (row.state, row.takeovers) == ("failed", 0)
    assert "the answer of odd/judge" in str(row.body)


def test_an_outcome_that_is_refused_is_a_failed_score_and_the_others_are_stored(
    start: Start, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    limit(url, "live_scores", "body")
    records: list[Record] = []

    def keep(record: Record, sample: Sample, scorer: Scorer) -> None:
        records.append(record)

    live = start([wordy, "contains"], ledger=url, on_record=keep)
    live.submit({**SAMPLE, "output": "In Rome, at long last."})
    for number in range(5):
        live.submit(**answered(number))
    rows = found(live)
    (failed,) = [row for row in rows if row.state == "failed"]
    assert {row.takeovers for row in rows} == {0}
    assert len([row for row in rows if row.state == "score"]) == 11
    assert failed.record is not None
    assert isinstance(failed.record.outcome, Failed)
    assert "be stored: the" in failed.record.outcome.error
    assert [record for record in records if isinstance(record.outcome, Failed)] == [failed.record]
    (said,) = [record.getMessage() for record in caplog.records if record.name == "evalstone.live"]
    assert "can't be stored" in said


def test_the_cost_of_an_outcome_that_is_refused_counts(start: Start, url: str) -> None:
    limit(url, "live_scores", "body")
    live = start("faithfulness", OddJudge(numbers=(("cost", 0.5), ("detail", {"said": "x" * 2 * LONG}))), ledger=url)
    live.submit(**answered(1))
    (row,) = found(live)
    assert row.state == "failed"
    assert row.cost is not None
    assert row.cost >= 0.5


def test_a_sample_whose_answers_are_refused_is_given_up_after_five_workers(start: Start, url: str) -> None:
    limit(url, "answers", "reply")
    live = start("faithfulness", OddJudge(), ledger=url)
    fields: Any = {**SAMPLE, "output": "In Rome, at long last."}
    long = Sample(**fields)
    live.submit(long)
    for number in range(3):
        live.submit(**answered(number))
    rows = found(live)
    (failed,) = [row for row in rows if row.state == "failed"]
    assert failed.record is not None
    assert failed.record.sample_id == long.id
    assert "5 workers ended" in str(failed.body)
    assert len([row for row in rows if row.state == "score"]) == 3


@pytest.mark.parametrize("trial", [10**5000, 2**63, 0, True, "1", b"1", [1]], ids=range(7))
def test_a_trial_is_a_number_that_can_be_stored(trial: Any) -> None:
    with pytest.raises(ConfigError, match=r"^trial .* from 1 to 9223372036854775807"):
        Sample(output="a", trial=trial)


def test_a_field_whose_value_has_no_text_is_refused_like_others() -> None:
    value: Any = 10**5000
    with pytest.raises(ConfigError, match=r"^input .* <int>$"):
        Sample(input=value)
