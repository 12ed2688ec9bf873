"""What an application submits: who is drawn, what is counted, and that it never notices."""

from __future__ import annotations

import logging
import math
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import LexicalJudge, Live, Sample, ScriptedJudge
from evalstone.errors import ConfigError
from evalstone.ledger import live as rows
from evalstone.ledger.live import LiveScore
from evalstone.ledger.store import Ledger
from evalstone.live import ScorerCoverage, Submission, client, scoring, sender
from evalstone.live.tracing import Trace
from evalstone.types import NOTHING_STORED, Asking, Failed, Message
from tests.fakes import python
from tests.live import scoring as own
from tests.live.conftest import Start
from tests.view.conftest import client_of

SAMPLE: dict[str, Any] = {"input": "Where?", "output": "In Rome.", "context": ["It is in Rome."], "reference": "Rome"}
CONTAINS = "contains"


def found(live: Live) -> list[LiveScore]:
    """All rows of a stream, the oldest first."""
    assert live.flush(20)
    with Ledger(live.ledger) as ledger:
        return rows.scores(ledger, stream=live.stream)[::-1]


def numbers(live: Live) -> ScorerCoverage:
    """The coverage of the only scorer, once everything is scored."""
    assert live.flush(20)
    (one,) = live.coverage().scorers
    assert one.unaccounted == 0
    return one


def answered(number: int) -> dict[str, Any]:
    return {**SAMPLE, "output": f"In Rome {number}."}


def trace(number: int) -> str:
    return f"{number + 1:032x}"  # of zeros alone, there is no trace


def test_what_is_submitted_is_scored_and_counted(start: Start, url: str) -> None:
    live = start([CONTAINS, "faithfulness"], ledger=url, stream="shop")
    for number in range(5):
        assert live.submit(**SAMPLE, trace_id=trace(number), entity="guide")
    scored = found(live)
    assert len(scored) == 10
    assert {each.value for each in scored if each.signature.startswith("contains")} == {1.0}
    assert {(each.state, each.source, each.stream, each.entity) for each in scored} == {
        ("score", "live", "shop", "guide")
    }
    assert [each.trace for each in scored][::2] == list(map(trace, range(5)))
    coverage = live.coverage()
    assert [(one.seen, one.eligible, one.sampled, one.n_score, one.coverage) for one in coverage.scorers] == [
        (5, 5, 5, 5, 1.0)
    ] * 2
    assert coverage.total.to_dict() | {"n_score": 10, "pending": 0, "unaccounted": 0} == coverage.total.to_dict()


def test_a_score_has_the_limits_of_its_judge_so_that_its_questions_can_be_rebuilt(start: Start) -> None:
    """The lexical judge is asked about whole answers. No run says so: there may be none."""
    live = start("fact_check", stream="shop")
    sample: Any = SAMPLE | {"output": "In Rome. It is far."}
    live.submit(Sample(**sample))
    (row,) = found(live)
    assert row.asking == Asking(limits={LexicalJudge().identity: LexicalJudge().context_limits})
    page = client_of(live.ledger).get(f"/live/shop/scores/{quote(row.id, safe='')}.json").json
    assert row.record is not None
    assert [*page["asked"][row.signature]] == [call.fingerprint for call in row.record.calls]
    code = start("contains", stream="code")
    code.submit(**SAMPLE)
    assert [each.asking for each in found(code)] == [NOTHING_STORED]


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_rate_draws_all_that_a_lower_one_does_in_every_process(id: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    both = Live([CONTAINS, "exact_match"], sampling={"exact_match": high, "contains": low})
    again = Live("exact_match", sampling=high)
    drawn = both.draw(Trace(id))
    assert (drawn >= 1) == (again.draw(Trace(id)) == 1)
    assert (drawn == 2) == (Live(CONTAINS, sampling=low).draw(Trace(id)) == 1)


def test_the_share_that_is_drawn_is_the_rate() -> None:
    live = Live(CONTAINS, sampling=0.25)
    by_trace = sum(live.draw(Trace(trace(n))) for n in range(4000))
    at_random = sum(live.draw(Trace()) for _ in range(4000))
    for drawn in (by_trace, at_random):
        assert 850 < drawn < 1150
    # SHA-256 of "a" begins with ca978112ca1b, which is 0.7913 of 2^48: decided alike in every version.
    place = 0xCA978112CA1B / 2**48
    rates = (0.0, 0.7913, place, math.nextafter(place, 1), 0.7914, 1.0)
    assert [Live(CONTAINS, sampling=rate).draw(Trace("a")) for rate in rates] == [0, 0, 0, 1, 1, 1]


def test_declined_filtered_and_failed_filters_are_counted(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    def wanted(submission: Submission) -> bool:
        if submission.entity == "broken":
            raise KeyError("no such")
        return submission.entity == "agent" and submission.metadata.get("kind") != "test"

    live = start(sampling=0.5, filter=wanted)
    for number in range(40):
        live.submit(**SAMPLE, trace_id=trace(number), entity="agent")
        live.submit(**SAMPLE, trace_id=trace(number), entity="other")
        live.submit(**SAMPLE, trace_id=trace(number), entity="broken")
        live.submit(Sample(**SAMPLE, metadata={"kind": "test"}), entity="agent")
    one = numbers(live)
    drawn = sum(live.draw(Trace(trace(number))) for number in range(40))
    assert 8 < drawn < 32
    assert (one.seen, one.filtered, one.eligible) == (160, 120, 40)
    assert (one.sampled, one.declined, one.n_score) == (drawn, 40 - drawn, drawn)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "filter failed" in said
    assert "KeyError: 'no such'" in said


def test_scorers_with_rates_of_their_own_are_counted_apart(start: Start) -> None:
    live = start([CONTAINS, "exact_match"], sampling={"contains": 0.2, "exact_match": 0.8})
    for number in range(60):
        live.submit(**SAMPLE, trace_id=trace(number))
    live.flush()
    contains, exact = live.coverage().scorers
    expected = [live.draw(Trace(trace(number))) for number in range(60)]
    assert (contains.n_score, exact.n_score) == (expected.count(2), expected.count(2) + expected.count(1))
    assert 0 < contains.n_score < exact.n_score < 60
    assert [(one.declined + one.sampled, one.sampled - one.n_score) for one in (contains, exact)] == [(60, 0), (60, 0)]
    assert live.coverage().total.unaccounted == 0


def test_a_rate_by_signature_goes_before_one_by_name(start: Start) -> None:
    live = start(CONTAINS, sampling={"contains": 0.0, "contains@1": 1.0})
    live.submit(**SAMPLE)
    assert numbers(live).n_score == 1


def test_what_is_dropped_is_dropped_for_the_scorers_it_was_drawn_for(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "QUEUE_BYTES", 10)
    live = start([CONTAINS, "exact_match"], sampling={"contains": 0.2, "exact_match": 0.8})
    for number in range(60):
        assert not live.submit(**SAMPLE, trace_id=trace(number))
    live.flush()
    contains, exact = live.coverage().scorers
    drawn = [live.draw(Trace(trace(number))) for number in range(60)]
    assert (contains.dropped_queue, exact.dropped_queue) == (drawn.count(2), 60 - drawn.count(0))
    assert (contains.sampled, exact.sampled) == (contains.dropped_queue, exact.dropped_queue)
    assert live.coverage().total.unaccounted == 0


def test_later_changes_of_what_was_submitted_do_not_reach_it(start: Start) -> None:
    live = start(CONTAINS)
    messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "In Rome."}]
    context, metadata = ["In Italy."], {"tags": ["a"]}
    live.submit({**SAMPLE, "messages": messages, "context": context, "metadata": metadata})
    messages[0]["content"] = "changed"
    messages.append({"role": "user", "content": "more"})
    context.clear()
    metadata["tags"].append("b")
    (row,) = found(live)
    with Ledger(live.ledger) as ledger, ledger.transaction() as connection:
        (body,) = connection.scalars("SELECT body FROM samples")
    assert not any(text in body for text in ("changed", "more", '"b"'))
    assert all(text in body for text in ('["a"]', "In Italy."))
    assert row.state == "score"


class Text(str):
    """A text of a class that the worker doesn't know."""


class Hostile:
    """Fails wherever it can."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("not to be pickled")

    def __str__(self) -> str:
        raise RuntimeError("not to be shown")

    __repr__ = __str__


class HostileMapping(dict[str, Any]):
    """Raises when it is read."""

    def get(self, key: Any, default: Any = None) -> Any:
        raise RuntimeError("not to be read")

    __getitem__ = get


class Unclear:
    """Doesn't say what it is."""

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise RuntimeError("not to be said")


def test_the_representation_of_an_object_is_not_scored_as_text(start: Start) -> None:
    live = start()
    live.submit(output=object(), metadata={"when": object()})  # pyright: ignore[reportArgumentType]
    live.submit({"output": "x", "reference": Path("x")})
    assert numbers(live).n_failed == 2
    outcomes = [each.record.outcome for each in found(live) if each.record is not None]
    errors = sorted(outcome.error for outcome in outcomes if isinstance(outcome, Failed))
    for error, field, kind in zip(errors, ("output", "reference"), (object(), Path("x")), strict=True):
        assert error.startswith(f"{scoring.INVALID}{field} must be")
        assert f"not {type(kind).__name__}" in error


def test_whatever_is_submitted_nothing_is_raised_and_all_of_it_is_accounted_for(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    live = start()
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    given: list[Any] = [
        3,
        object(),
        Hostile(),
        HostileMapping(SAMPLE),
        {**SAMPLE, "metadata": HostileMapping(a=1)},
        Unclear(),
        {},
        {"outptu": "typo"},
        {"output": 3},
        {"output": "x", "metadata": {"n": float("nan")}},
        {"output": Hostile()},
        {"context": endless},
        {"metadata": {"deep": deep}, "output": "x"},
        {"output": "x", "messages": [{"role": "nobody"}]},
        {1: 2},
    ]
    for each in given:
        live.submit(each)
    live.submit()
    live.submit(Sample(output="x"), input="both")
    live.submit(**SAMPLE, trace_id=Hostile())  # pyright: ignore[reportArgumentType]
    live.submit(output="lone \ud83d and \x00", reference="lone", trace_id="\ud83d")
    live.submit({**SAMPLE, "metadata": {"trace": Hostile()}})
    live.submit(**SAMPLE, trace_id=Text("x" * 1_000_000), entity=Hostile())  # pyright: ignore[reportArgumentType]
    live.submit(**SAMPLE, source="elsewhere", entity=Text("agent"))  # pyright: ignore[reportArgumentType]
    live.submit(**SAMPLE, source=Hostile())  # pyright: ignore[reportArgumentType]
    one = numbers(live)
    assert one.seen == one.n_score + one.n_skipped + one.n_failed == len(given) + 8
    assert {row.trace for row in found(live)} == {None, "x" * 200, "\\ud83d"}
    assert one.n_failed >= 12
    outcomes = [each.record.outcome for each in found(live) if each.record is not None]
    reasons = [outcome.error for outcome in outcomes if isinstance(outcome, Failed)]
    assert all(reason.startswith(scoring.INVALID) for reason in reasons)
    assert any("outptu" in reason and "output" in reason for reason in reasons)
    kinds = [record.getMessage().partition(":")[2][:24] for record in caplog.records]
    assert len(kinds) == len(set(kinds)) <= 3  # each kind is logged once


def test_values_of_other_classes_become_plain_data(start: Start) -> None:
    live = start()
    live.submit(output=Text("In Rome."), reference="Rome", metadata={"when": Path("a"), "set": {1}})
    live.submit(Sample(output="Rome", reference="Rome", messages=[Message(role="user", content="Where?")]))
    assert [each.value for each in found(live)] == [1.0, 1.0]


def test_a_full_queue_drops_what_comes_and_the_application_does_not_wait(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scoring, "MAX_UNFINISHED", 4)
    going = threading.Event()

    async def blocked(question: object) -> str:
        while not going.is_set():
            await own.pause()
        return '{"claims": []}'

    live = start("factual_correctness", ScriptedJudge(blocked), queue=10, concurrency=2)
    begun = time.perf_counter()
    taken = [live.submit(**answered(n)) for n in range(50)]
    took = time.perf_counter() - begun
    assert took < 1
    for number in range(50, 70):
        if number % 10 == 0:
            time.sleep(0.4)  # for the first ten, and later for nothing, since the worker has enough
        taken.append(live.submit(**answered(number)))
    assert taken[50:] == [True] * 10 + [False] * 10
    assert live.coverage().total.unaccounted == 0
    going.set()
    one = numbers(live)
    assert (one.seen, one.dropped_queue) == (70, taken.count(False))
    assert 30 <= taken[:50].count(False) <= 40
    assert one.sampled == one.dropped_queue + one.n_score + one.n_skipped + one.n_failed
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "live: the queue is full (10 samples, or 64 MB); new samples are dropped and counted"


def test_what_is_too_large_for_the_queue_is_dropped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "QUEUE_BYTES", 10_000)
    live = start()
    assert live.submit(**SAMPLE)
    assert not live.submit(output="x" * 20_000, reference="x")
    for _ in range(3):
        assert live.submit(output="x" * 6_000, reference="x")
        assert live.flush(20)
    assert (numbers(live).dropped_queue, numbers(live).n_score) == (1, 4)


def test_the_trace_is_that_of_the_metadata_or_of_the_current_span(start: Start) -> None:
    sdk: Any = pytest.importorskip("opentelemetry.sdk.trace")
    sampling: Any = pytest.importorskip("opentelemetry.sdk.trace.sampling")
    live, unsampled = start(stream="a"), start(stream="b", unsampled=True)
    known = {"trace_id": trace(7), "span_id": "00f067aa0ba902b7", "response_id": "r-1", "entity": "planner"}
    live.submit(Sample(**SAMPLE, metadata={"trace": known}))
    with sdk.TracerProvider().get_tracer("t").start_as_current_span("s") as span:
        live.submit(**SAMPLE)
        context = span.get_span_context()
    with sdk.TracerProvider(sampler=sampling.ALWAYS_OFF).get_tracer("t").start_as_current_span("s"):
        live.submit(**SAMPLE)
        unsampled.submit(**SAMPLE)
    live.submit(**SAMPLE)
    by_metadata, by_span, without = found(live)
    assert (by_metadata.trace, by_metadata.span, by_metadata.response, by_metadata.entity) == tuple(known.values())
    assert (by_span.trace, by_span.span) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    assert (without.trace, without.span) == (None, None)
    assert (numbers(live).declined, numbers(unsampled).n_score) == (1, 1)
    with Ledger(live.ledger) as ledger, ledger.transaction() as connection:
        bodies = connection.scalars("SELECT body FROM samples ORDER BY body")
    assert sum("trace_id" in body for body in bodies) == 3
    invalid = start(stream="d")
    invalid.submit({"answers": "x", "metadata": {"trace": known}}, entity="own")
    (row,) = found(invalid)
    assert (row.state, row.span, row.entity) == ("failed", known["span_id"], "own")
    other = start(stream="c")
    other.submit(**SAMPLE, trace_id="order 7")
    (row,) = found(other)
    assert row.trace == "order 7"
    with Ledger(live.ledger) as ledger, ledger.transaction() as connection:
        bodies = connection.scalars("SELECT body FROM samples")
    assert not any("order 7" in body for body in bodies)  # only IDs of OpenTelemetry are exported as such


def test_a_judge_that_is_down_fails_rows_and_scoring_goes_on_later(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scoring, "FIRST_PAUSE", 0.2)
    file = tmp_path / "up"
    live = start("factual_correctness", own.BrokenJudge(path=file))
    for number in range(30):
        live.submit(**answered(number))
    assert numbers(live).n_failed == 30
    assert None in {row.cost for row in found(live)}  # what the calls that failed have cost is unknown
    file.touch()
    time.sleep(0.3)
    live.submit(**SAMPLE)
    one = numbers(live)
    assert (one.n_failed, one.n_score + one.n_skipped) == (30, 1)
    assert (
        sum("did not answer" in record.getMessage() or "failed on" in record.getMessage() for record in caplog.records)
        == 1
    )
    outcomes = [each.record.outcome for each in found(live) if each.record is not None]
    assert all(isinstance(outcome, Failed) for outcome in outcomes[:30])


def test_once_the_budget_of_the_day_is_spent_what_would_be_asked_is_dropped(start: Start, tmp_path: Path) -> None:
    judge = own.PaidJudge(path=tmp_path / "asked")
    first = start("factual_correctness", judge, daily_budget=3.0, concurrency=1)
    for number in range(6):
        first.submit(**answered(number))
    one = numbers(first)
    paid = len((tmp_path / "asked").read_text().splitlines())
    assert one.sampled == one.dropped_budget + one.n_score + one.n_skipped
    assert one.dropped_budget > 0
    assert 0 < paid <= 4
    first.close()
    again = start(["factual_correctness", CONTAINS], judge, daily_budget=3.0)
    again.submit(**answered(99))
    again.flush()
    contains, factual = again.coverage().scorers
    assert (factual.dropped_budget, contains.n_score) == (one.dropped_budget + 1, 1), "code costs nothing"
    assert len((tmp_path / "asked").read_text().splitlines()) == paid


def test_what_is_not_done_at_the_end_stays_pending_and_the_next_worker_takes_it_over(
    start: Start, tmp_path: Path, url: str
) -> None:
    judge = own.PaidJudge(path=tmp_path / "asked", pause=0.1)
    first = start("factual_correctness", judge, concurrency=2, ledger=url)
    first.submit(**SAMPLE)
    assert first.flush(20)
    for number in range(6):
        first.submit(**answered(number))
    begun = time.monotonic()
    assert not first.close(0.4)
    assert time.monotonic() - begun < 3
    left = first.coverage().total
    assert (left.seen, left.unaccounted) == (7, 0)
    assert 0 < left.pending <= 6
    second = start("factual_correctness", judge, concurrency=6, ledger=url)
    second.start()
    deadline = time.monotonic() + 20
    while (now := second.coverage().total).pending and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (now.seen, now.pending, now.unaccounted, now.n_score + now.n_skipped) == (7, 0, 0, 7)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) - len(set(asked)) <= 2  # only what was in flight is asked again


def test_a_sample_that_five_workers_left_behind_fails(start: Start, tmp_path: Path) -> None:
    live = start(own.endless)
    live.submit(**SAMPLE)
    live.close(0.2)
    for takeovers in (4, 5):
        with Ledger(live.ledger) as ledger, ledger.transaction(writing=True) as connection:
            connection.execute(f"UPDATE live_scores SET takeovers = {takeovers - 1}")
        live.start()
        if takeovers == 4:
            assert not live.flush(0.3)
            live.close(0.1)
    assert numbers(live).n_failed == 1
    (row,) = found(live)
    assert "5 workers ended" in str(row.body)
    assert row.cost is None  # what the workers paid isn't known


def test_a_live_that_was_closed_starts_again(start: Start) -> None:
    live = start()
    assert live.close()
    assert live.flush(1)
    live.submit(**SAMPLE)
    assert live.close(20)
    live.submit(**SAMPLE)
    assert numbers(live).n_score == 2


def test_each_record_is_given_to_on_record_and_its_errors_stop_nothing(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(record: object, sample: object, scorer: object) -> None:
        raise ValueError("no \x1b[2J api_key=hunter2")

    for name, on_record in (("a", own.Keep(tmp_path / "kept")), ("b", broken)):
        live = start(stream=name, on_record=on_record)
        for _ in range(2):
            live.submit(**SAMPLE)
        assert numbers(live).n_score == 2
    assert (tmp_path / "kept").read_text().splitlines() == [f"{CONTAINS}@1 In Rome. 1.0 1"] * 2
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("b: on_record failed")
    assert "ValueError" in said
    assert not [secret for secret in ("\x1b", "hunter2") if secret in said]


def test_rows_whose_counts_are_missing_are_unaccounted(start: Start) -> None:
    live = start()
    for _ in range(3):
        live.submit(**SAMPLE)
    assert numbers(live).n_score == 3
    with Ledger(live.ledger) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("DELETE FROM live_scores WHERE id LIKE '%/1/0'")
    assert live.coverage().total.unaccounted == 1
    with Ledger(live.ledger) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE live_counts SET declined = 5, seen = 4")
    assert live.coverage().total.unaccounted == 1 + 5 + 1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sampling": 1.5}, "sampling must be a number from 0 to 1"),
        ({"sampling": True}, "sampling must be a number from 0 to 1"),
        ({"sampling": float("nan")}, "sampling must be a number from 0 to 1"),
        ({"sampling": {"contain": 0.5}}, "unknown scorer"),
        ({"sampling": {}}, "no rate for contains"),
        ({"queue": 0}, "queue must be a whole number"),
        ({"concurrency": 1.5}, "concurrency must be a whole number"),
        ({"stream": " "}, "stream must be one line"),
        ({"filter": "x"}, "filter must be a function"),
        ({"scorers": ["exact_match", "exact_match"]}, "named twice"),
        ({"scorers": "faithfulnes"}, "faithfulnes"),
        ({"scorers": []}, "live scoring needs a scorer"),
        ({"ledger": "none"}, "ledger"),
        ({"scorers": "faithfulness", "judge": "openai/unheard-of", "daily_budget": 1.0}, "price"),
        ({"daily_budget": -1.0}, "budget"),
        ({"priority": "high"}, "priority must be 'low' or 'idle', not 'high'"),
        ({"priority": "idle", "process": False}, "process=False has none"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    settings: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    given: dict[str, Any] = {"scorers": CONTAINS, **settings}
    with pytest.raises(ConfigError, match=told):
        Live(**given)


def test_what_no_other_process_can_have_is_refused() -> None:
    def brevity(output: str) -> float:
        return 1.0

    def ignore(record: object, sample: object, scorer: object) -> None:
        pass

    with pytest.raises(ConfigError, match="process=False"):
        Live(brevity)
    with pytest.raises(ConfigError, match="process=False"):
        Live(CONTAINS, on_record=ignore)
    here = type("Here", (own.PaidJudge,), {"__module__": "__main__"})
    with pytest.raises(ConfigError, match=r"judge .*Here .* __main__"):
        Live("faithfulness", here(path=Path("x")))
    keep = type("Keep", (own.Keep,), {"__module__": "__main__"})
    with pytest.raises(ConfigError, match=r"^on_record .* __main__"):
        Live(CONTAINS, on_record=keep(Path("x")))


def test_the_application_imports_no_database_until_it_asks_for_coverage() -> None:
    code = "import sys; from evalstone import Live; Live('exact_match'); print('evalstone.ledger.store' in sys.modules)"
    assert python(code).strip() == "False"


def test_logging_is_under_one_name() -> None:
    assert logging.getLogger("evalstone.live") is sender.log
    assert scoring.OncePerKind is sender.OncePerKind
    assert client.SHUTDOWN == 5.0
