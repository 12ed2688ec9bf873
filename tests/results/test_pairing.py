"""Pairing: which samples of two runs belong together, with IDs and without."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    EvalstoneError,
    Message,
    Run,
    Sample,
    compare,
    drift,
    evaluate,
    gate,
    power,
    read_run,
    write_run,
)
from evalstone.datasets.read_samples import ReadSamples
from evalstone.results.human_labels import load_labels
from evalstone.results.pairing import pair_samples
from evalstone.results.views.comparison import comparison_view
from evalstone.stats.comparison import PairedComparison
from evalstone.targets import FunctionTarget
from evalstone.types import about, is_own_id, note
from tests import traced as traces
from tests.runs import Given

WORSE, BETTER = [float(n >= 8) for n in range(24)], [float(n >= 2) for n in range(24)]
BY_WHAT_WAS_ASKED = note("paired_by_question", "warning", because="no_ids")


def rows(answers: Sequence[object], **more: Callable[[int], Any]) -> list[dict[str, Any]]:
    """One row an answer, with a question of its own. more: other fields, by the number of the row."""
    return [
        {"input": f"question {n}", "output": str(answer), **{name: value(n) for name, value in more.items()}}
        for n, answer in enumerate(answers)
    ]


def judged(data: Any, **options: Any) -> Run:
    options.setdefault("ledger", None)
    return evaluate(data, [Given()], **options)


def pairs_of(a: Run, b: Run) -> dict[str, str]:
    """The outputs of paired samples."""
    pairing = pair_samples(a, b)
    ours, theirs = ({sample.key: sample.output or "" for sample in run.samples or ()} for run in (a, b))
    return {ours[pairing.in_first(key)]: output for key, output in theirs.items() if pairing.in_first(key) in ours}


def difference(a: Run, b: Run, **options: Any) -> tuple[int, float]:
    line = compare(a, b, **options)["given"]
    assert isinstance(line.result, PairedComparison)
    return line.result.n, line.difference.estimate


def written(data: Sequence[Mapping[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return path


def test_without_ids_two_runs_differ_by_as_much_as_with_ids() -> None:
    with_ids = [judged(rows(answers, id=str)) for answers in (WORSE, BETTER)]
    without = [judged(rows(answers)) for answers in (WORSE, BETTER)]
    assert difference(*without) == difference(*with_ids) == (24, 0.25)
    assert difference(*without, allow_mismatch=True) == (24, 0.25)
    compared = compare(*without)
    assert compared.notes == (
        *about([BY_WHAT_WAS_ASKED], "A", "B"),
        note("answers_differ", runs=("A", "B"), different=6, samples=24),
    )


def test_the_order_of_the_rows_does_not_matter() -> None:
    shuffled = rows(BETTER)
    random.Random(1).shuffle(shuffled)
    assert difference(judged(rows(WORSE)), judged(shuffled)) == (24, 0.25)


def test_groups_and_weights_count_as_with_ids() -> None:
    weighted: Mapping[str, Callable[[int], Any]] = {"weight": lambda n: 1 + n % 3}
    grouped: Mapping[str, Callable[[int], Any]] = {**weighted, "group": lambda n: f"g{n // 4}"}
    results: list[Any] = []
    for ids in ({"id": str}, {}):
        a, b = judged(rows(WORSE, **weighted, **ids)), judged(rows(BETTER, **grouped, **ids))
        results.append(compare(a, b, allow_mismatch=True)["given"].result)
    assert results[0] == results[1]
    ungrouped = compare(a, judged(rows(BETTER, **weighted)))["given"].result
    assert results[1].difference != ungrouped.difference


def test_the_reference_is_part_of_what_was_asked_and_so_are_instructions_without_a_question() -> None:
    asked: list[Callable[[int], dict[str, Any]]] = [
        lambda n: {"input": "Which?", "reference": f"r{n}"},
        lambda n: {"turns": [{"input": "Which?", "reference": f"r{n}"}]},
        lambda n: {"instructions": f"Do {n}."},
    ]
    for fields in asked:
        data = [{**fields(n), "output": f"0.{n}"} for n in range(4)]
        changed = [{**row, "output": f"{row['output']}1"} for row in reversed(data)]
        assert pairs_of(judged(data), judged(changed)) == {f"0.{n}": f"0.{n}1" for n in range(4)}


def test_contexts_instructions_states_and_metadata_do_not_decide_which_samples_are_paired() -> None:
    a = judged(rows(WORSE, context=lambda n: [f"passage {n}"], metadata=lambda n: {"seconds": n / 7}))
    b = judged(rows(BETTER, context=lambda n: [f"other {n}"], metadata=lambda n: {"seconds": n / 9}))
    assert difference(a, b) == (24, 0.25)
    prompted = judged([Sample(**row, instructions="Be brief.") for row in rows(BETTER)])
    assert difference(a, prompted, allow_mismatch=True) == (24, 0.25)


def test_an_unpaired_comparison_counts_what_both_runs_asked() -> None:
    undetectable = note("nothing_detectable", runs=("A", "B"), scorers=("given",), why="unpaired")
    noted = compare(judged(rows(WORSE)), judged(rows(BETTER)), unpaired=True).notes
    assert noted == (note("could_be_paired", "caution", runs=("A", "B"), samples=24),)
    again = [*rows(BETTER), {**rows(BETTER)[0], "context": ["another"]}]
    assert compare(judged(rows(WORSE)), judged(again), unpaired=True).notes == (undetectable,)


def test_a_gate_without_ids_fails_the_regression_that_it_fails_with_ids() -> None:
    criteria: dict[str, Any] = {"max_regression": {"given": 0.1}}
    for more in ({}, {"id": str}):
        worse, better = (judged(rows(answers, **more)) for answers in ([0.0] * 24, [1.0] * 24))
        for allowed in (False, True):
            assert gate(worse, **criteria, baseline=better, allow_mismatch=allowed).verdict == "fail"


def test_power_slices_and_three_runs_pair_by_what_was_asked() -> None:
    kinds: Callable[[int], Any] = lambda n: {"kind": "even" if n % 2 == 0 else "odd"}  # noqa: E731
    runs = [judged(rows(answers, metadata=kinds)) for answers in (WORSE, BETTER, [0.5] * 24)]
    assert power(runs[1], 0.1, baseline=runs[0])["given"].plan.n == 24
    compared = compare(*runs, slice_by="kind")
    assert [
        (line.b, line.key, line.result.n) for line in compared.slices if isinstance(line.result, PairedComparison)
    ] == [
        ("B", "even", 12),
        ("B", "odd", 12),
        ("C", "even", 12),
        ("C", "odd", 12),
    ]
    assert compared.all_runs["given"].n == 24


def test_the_samples_that_changed_most_show_the_answers_of_both_runs() -> None:
    compared = compare(judged(rows(["0.0", "0.5"])), judged(rows(["1.0", "0.5"])))
    (change,) = compared["given"].changes
    assert change.sample_id != change.sample_id_b
    (examples,) = comparison_view(compared).examples
    (shown,) = examples.samples
    assert [item.text for item in shown.panel[-1].items] == ["0.0", "1.0"]


def test_runs_that_were_saved_and_read_again_are_paired_in_the_same_way(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    runs = [judged(rows(answers), ledger=ledger) for answers in (WORSE, BETTER)]
    folders = [tmp_path / "a", tmp_path / "b"]
    for run, folder in zip(runs, folders, strict=True):
        write_run(run, folder)
    assert difference(*map(read_run, folders)) == (24, 0.25)
    assert difference(*(read_run(run.id, ledger=ledger) for run in runs)) == (24, 0.25)
    # samples.jsonl is a dataset, too: its default IDs are none of the user's own
    assert difference(*(judged(folder / "samples.jsonl") for folder in folders)) == (24, 0.25)


def test_streamed_files_are_paired_like_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.datasets.loading.MOST_IN_MEMORY", 1)
    twice = [*rows(WORSE), *rows(WORSE)[:1]]
    a = judged(written(twice, tmp_path / "a.jsonl"))
    b = judged(written([*rows(BETTER), *rows(BETTER)[:1]], tmp_path / "b.jsonl"))
    assert not any(is_own_id(sample.id) for run in (a, b) for sample in run.samples or ())
    assert difference(a, b) == (25, pytest.approx(6 / 25))


def test_the_format_of_the_files_does_not_decide_which_samples_are_paired(tmp_path: Path) -> None:
    before = [{"question": f"Which {n}?", "answer": str(answer), "reference": ""} for n, answer in enumerate(WORSE)]
    lines = ["question,answer,reference", *(f"Which {n}?,{answer}," for n, answer in enumerate(BETTER))]
    (tmp_path / "b.csv").write_text("\n".join(lines))
    spoken = [chat(f"Which {n}?", answers=[str(answer)]) for n, answer in enumerate(BETTER)]
    a = judged(written(before, tmp_path / "a.jsonl"))
    prompted = [chat(f"Answer: {one.messages[1].content}", answers=[str(answer)], input=one.messages[1].content)
                for one, answer in zip(spoken, BETTER, strict=True)]  # fmt: skip
    for b in (judged(tmp_path / "b.csv"), judged(spoken), judged(prompted)):
        assert list(pairs_of(a, b)) == ["0.0", "1.0"]
        assert difference(a, b, allow_mismatch=True) == (24, 0.25)


def test_how_a_file_stores_line_breaks_and_accents_does_not_decide_which_samples_are_paired() -> None:
    def asked(answers: Sequence[object], question: str) -> Run:
        return judged(
            [{**row, "input": question.format(n), "reference": "Zu\u0308rich"} for n, row in enumerate(rows(answers))]
        )

    a = asked(WORSE, "Où est\nle n° {}?")
    b = asked(BETTER, "Ou\u0300 est\r\nle n° {}? ")
    assert difference(a, b, allow_mismatch=True) == (24, 0.25)
    with pytest.raises(ConfigError, match="24 of 24 samples"):
        compare(a, b)


def test_a_target_that_answers_questions_without_ids_is_compared_with_an_export_of_its_answers() -> None:
    questions = [{"input": row["input"]} for row in rows(WORSE)]

    def agent(*, input: str) -> str:
        return str(WORSE[int(input.split()[1])])

    ran = judged(questions, target=FunctionTarget(function=agent))
    assert difference(ran, judged(rows(BETTER))) == (24, 0.25)
    again = [{"input": f"question {n} again"} for n in range(2)]
    more = judged([*questions, *again], target=FunctionTarget(function=agent))
    for runs, told in (
        (
            (ran, more),
            r"0 only in the first run, 2 only in the second \(such as 'question 0 again'\), by what was asked",
        ),
        (
            (more, ran),
            r"2 only in the first run \(such as 'question 0 again'\), 0 only in the second, by what was asked",
        ),
    ):
        with pytest.raises(ConfigError, match=told):
            compare(*runs)
    assert difference(ran, more, allow_mismatch=True) == difference(more, ran, allow_mismatch=True) == (24, 0.0)


def test_trials_of_samples_without_ids_are_paired_by_trial() -> None:
    def agent(*, input: str, trial: int) -> str:
        return "1.0" if trial == 1 else "0.5"

    def other(*, input: str, trial: int) -> str:
        return "0.5"

    one, two = [{"input": f"q{n}"} for n in range(6)], [{"input": f"q{n}", "metadata": {"v": 2}} for n in range(6)]
    a = judged(one, target=FunctionTarget(function=agent), trials=2)
    b = judged(two, target=FunctionTarget(function=other), trials=2)
    assert difference(a, b) == (6, -0.25)
    decision = gate(b, max_regression={"given": 0.1}, baseline=a, alpha=None).decisions[0]
    assert (decision.n, decision.estimate) == (12, -0.25)


def test_samples_that_asked_the_same_are_paired_by_their_order_with_a_note() -> None:
    a, b = (
        judged([{"input": "Which?", "output": str(answer)} for answer in answers]) for answers in ([0, 1], [1, 0.5])
    )
    assert pairs_of(a, b) == {"0": "1", "1": "0.5"}
    assert pair_samples(a, b).notes == (
        BY_WHAT_WAS_ASKED,
        note("paired_in_order", "warning", samples=2),
    )


def test_rows_that_are_the_same_are_paired_in_order_however_often_each_run_has_them() -> None:
    def agent(*, input: str) -> str:
        return "0.5"

    a, b = (
        judged([{"input": question} for question in questions], target=FunctionTarget(function=agent))
        for questions in ("aab", "ab")
    )
    with pytest.raises(ConfigError, match=r"1 only in the first run \(such as 'a'\), 0 only in the second"):
        compare(a, b)
    assert difference(a, b, allow_mismatch=True) == (2, 0.0)
    assert note("paired_in_order", "warning", samples=1) in pair_samples(a, b).notes


ASKED_UNEQUALLY = (
    "these samples have no IDs, and it is not clear which samples belong together: 1 question (such as 'Which 1?') "
    "was asked more often in one run than in the other, or began conversations that went on differently. To pair "
    "them by ID, use the column case, with a value of its own for each sample: score both datasets again with "
    'map={"id": "case"}'
)


@pytest.mark.parametrize("allow_mismatch", [False, True])
def test_a_question_that_was_not_asked_equally_often_is_refused_with_the_columns_that_can_be_ids(
    allow_mismatch: bool,
) -> None:
    def exported(answers: Sequence[object], first: int) -> Run:
        with_columns = rows(answers, case=lambda n: f"c{n + first}", topic=lambda n: "geo", took=lambda n: n + 0.5)
        return judged([{**row, "weight": n + 1, "input": f"Which {n // 2}?"} for n, row in enumerate(with_columns)])

    with pytest.raises(ConfigError) as raised:
        compare(exported([0, 1, 1], 0), exported([0, 1, 1, 0], 0), allow_mismatch=allow_mismatch)
    assert str(raised.value) == ASKED_UNEQUALLY
    with pytest.raises(ConfigError, match="a column id with"):
        compare(exported([0, 1, 1], 0), exported([0, 1, 1, 0], 100), allow_mismatch=allow_mismatch)


def test_a_reference_without_a_question_is_named_if_it_was_not_asked_equally_often() -> None:
    a, b = (judged([{"reference": "Bern", "output": str(n / 4)} for n in range(count)]) for count in (2, 3))
    with pytest.raises(ConfigError, match=r"1 question .*'Bern'"):
        compare(a, b)


@pytest.mark.parametrize("allow_mismatch", [False, True])
def test_samples_that_asked_nothing_need_ids(allow_mismatch: bool) -> None:
    a, b = (judged([{"output": str(answer), "context": [str(n)], "input": "", "reference": " "}
                    for n, answer in enumerate(answers)]) for answers in ([0, 1], [1, 1]))  # fmt: skip
    with pytest.raises(ConfigError, match=r"2 of 2 samples .*first"):
        compare(a, b, allow_mismatch=allow_mismatch)
    asked = rows([0, 1])
    with pytest.raises(ConfigError, match=r"1 of 3 samples .*second"):
        compare(judged(asked), judged([*asked, {"output": "1"}]), allow_mismatch=allow_mismatch)


@pytest.mark.parametrize("allow_mismatch", [False, True])
def test_ids_in_only_one_of_the_runs_pair_nothing(allow_mismatch: bool) -> None:
    named = judged(rows(WORSE, id=lambda n: f"c{n}"))
    told = "the samples of the second run have no IDs and those of the first run have some"
    with pytest.raises(ConfigError, match=f"{told}.* a column id"):
        compare(named, judged(rows(BETTER)), allow_mismatch=allow_mismatch)
    unread = judged(rows(BETTER, case=lambda n: f"c{n}"))
    has_them = (
        r"The column 'case' of the second run has the IDs of the other: score it again with map=\{\"id\": \"case\""
    )
    with pytest.raises(ConfigError, match=has_them):
        compare(named, unread, allow_mismatch=allow_mismatch)


def test_samples_with_ids_of_their_own_are_paired_by_them_among_others() -> None:
    mixed: Callable[[int], Any] = lambda n: f"c{n}" if n % 2 else None  # noqa: E731
    a, b = judged(rows(WORSE, id=mixed)), judged(rows(BETTER, id=mixed))
    assert difference(a, b) == (24, 0.25)


def test_an_id_pairs_samples_before_their_question_does() -> None:
    asked = [("x", "Which?"), ("y", "Which?"), (None, "Who?")]
    a = judged([{"id": name, "input": text, "output": f"0.{n}"} for n, (name, text) in enumerate(asked)])
    edited = [("y", "Which?"), (None, "Who?"), ("x", "Which one?")]
    b = judged([{"id": name, "input": text, "output": f"1.{n}"} for n, (name, text) in enumerate(edited)])
    assert pairs_of(a, b) == {"0.0": "1.2", "0.1": "1.0", "0.2": "1.1"}
    assert pair_samples(a, b).notes == (BY_WHAT_WAS_ASKED,)


def test_ids_that_have_nothing_in_common_are_refused_with_the_columns_that_can_be_ids() -> None:
    a = judged(rows(BETTER, id=lambda n: f"a{n}", case=lambda n: n))
    b = judged(rows(BETTER, id=lambda n: f"b{n}", case=lambda n: n))
    with pytest.raises(ConfigError, match="the column case"):
        compare(a, b, allow_mismatch=True)
    several: dict[str, Callable[[int], Any]] = dict.fromkeys(("row", "number", "case", "key"), str)
    a, b = (judged(rows(BETTER, id=lambda n, of=of: f"{of}{n}", **several)) for of in "ab")
    with pytest.raises(ConfigError, match=r"number, .*\{\"id\": \"row\"\}"):
        compare(a, b, allow_mismatch=True)


def test_runs_without_texts_are_paired_by_ids_only() -> None:
    named = [replace(judged(rows(answers, id=str)), samples=None) for answers in (WORSE, BETTER)]
    assert difference(*named, allow_mismatch=True) == (24, 0.25)


class Rereadable(ReadSamples):
    """Samples that are read anew each time; how many were read."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples, self.times = samples, 0

    def read(self) -> Iterator[Sample]:
        for sample in self.samples:
            self.times += 1
            yield sample

    def __len__(self) -> int:
        return len(self.samples)


def test_ids_of_finished_runs_are_known_without_reading_the_samples() -> None:
    runs = [judged(rows(answers, id=str)) for answers in (WORSE, BETTER)]
    texts = [Rereadable(run.samples or ()) for run in runs]
    a, b = (replace(run, samples=samples) for run, samples in zip(runs, texts, strict=True))
    assert pair_samples(a, b).partners is None
    assert sum(each.times for each in texts) <= 2  # to see whether they are traces
    assert difference(a, b) == (24, 0.25)


def test_the_same_samples_judged_twice_need_no_ids() -> None:
    alike = [{"output": str(answer)} for answer in BETTER]
    assert difference(judged(alike), judged(alike)) == (24, 0.0)
    assert drift(judged(alike), judged(alike))["given"].drift.comparison.n == 24


def test_traces_of_the_same_questions_are_paired_by_them_and_the_same_traces_by_id() -> None:
    def traced(first: int, answers: Sequence[float], *, times: int = 1) -> Run:
        said = [[traces.message("user", f"q{n // times}")] for n in range(len(answers))]
        spans = [traces.spans(traces.span(1, "chat", traces.chat(said[n], str(answer)), trace=f"{first + n:032x}"))
                 for n, answer in enumerate(answers)]  # fmt: skip
        return judged(spans)

    a, b = traced(1, WORSE), traced(100, BETTER)
    assert difference(a, b) == (24, 0.25)
    assert pair_samples(a, b).notes == (note("paired_by_question", "warning", because="traces"),)
    grown = traced(1, [*WORSE, 1.0])
    assert pair_samples(a, grown).notes == ()
    assert difference(a, grown, allow_mismatch=True) == (24, 0.0)
    by_hand = "load the traces in Python and give the samples IDs of your own"
    without_ids = judged(rows(BETTER))
    twice = traced(1, [0, 1, 1], times=2), traced(100, [0, 1, 1, 0], times=2)
    for runs in (twice, (a, without_ids), (without_ids, a)):
        with pytest.raises(ConfigError, match=by_hand):
            compare(*runs, allow_mismatch=True)
    named = [
        judged([replace(sample, id=f"case {n}") for n, sample in enumerate(run.samples or ())])
        for run in (a, traced(200, BETTER[::-1]))
    ]
    assert pair_samples(*named).notes == ()
    assert difference(*named, allow_mismatch=True)[0] == 24


def chat(*said: str, answers: Sequence[str], **fields: Any) -> Sample:
    """A conversation: what the user said, and the answers."""
    messages: list[Message] = [Message(role="system", content="Be kind.")]
    for text, answer in zip(said, answers, strict=True):
        messages += [Message(role="user", content=text), Message(role="assistant", content=answer)]
    return Sample(messages=messages, output=answers[-1], **fields)


@pytest.mark.parametrize("fields", [{}, {"input": "Hi."}])
def test_conversations_are_paired_by_what_the_user_said(fields: dict[str, Any]) -> None:
    a = judged([chat("Hi.", f"I am {n}.", answers=["Hello.", f"0.{n}"], **fields) for n in range(5)])
    b = judged([chat("Hi.", f"I am {n}.", answers=["Hi!", f"0.{n}1"], **fields) for n in reversed(range(5))])
    assert pairs_of(a, b) == {f"0.{n}": f"0.{n}1" for n in range(5)}
    assert pair_samples(a, b).notes == (BY_WHAT_WAS_ASKED,)


def test_a_user_who_answers_the_system_does_not_decide_which_conversations_are_paired() -> None:
    a = judged([chat(f"Opening {n}", "Thanks.", answers=["Yes.", "0.5"]) for n in range(5)])
    b = judged([chat(f"Opening {n}", "Thanks." if n < 3 else "What?", answers=["No.", "0.25"]) for n in range(5)])
    assert difference(a, b) == (5, -0.25)


def test_what_a_simulated_user_says_does_not_decide_which_conversations_are_paired() -> None:
    def user(messages: Sequence[Message]) -> str | None:
        said = [message.role for message in messages].count("user")
        return f"Why {messages[-1].content}?" if said == 1 else None

    def held(answer: str, people: int) -> Run:
        def agent(*, messages: Sequence[Message]) -> str:
            return answer

        asked = [{"input": "Hi.", "instructions": f"Help person {n}."} for n in range(people)]
        return judged(asked, target=FunctionTarget(function=agent), user=user)

    assert difference(held("0.5", 4), held("0.25", 5), allow_mismatch=True) == (4, -0.25)


@pytest.mark.parametrize("referenced", [True, False])
def test_turns_are_what_was_asked_and_their_answers_are_not(referenced: bool) -> None:
    def held(answers: Sequence[str]) -> Run:
        known = [{"reference": answer[2]} if referenced else {} for answer in answers]
        turns = [
            [{"input": "Hi.", "output": answer}, {"input": f"I am {answer[2]}.", **more}]
            for answer, more in zip(answers, known, strict=True)
        ]
        return judged([{"turns": of, "output": answer} for of, answer in zip(turns, answers, strict=True)])

    a, b = held(["0.1", "0.2", "0.3"]), held(["0.35", "0.15", "0.25"])
    assert pairs_of(a, b) == {"0.1": "0.15", "0.2": "0.25", "0.3": "0.35"}
    assert pair_samples(a, b).notes == (BY_WHAT_WAS_ASKED,)


def test_pairing_takes_no_longer_for_piles_of_accents() -> None:
    question = "Z" + "\u0301\u0316" * 60_000
    samples = [Sample(input=question, output=answer) for answer in ("1", "0")]
    a, b = (evaluate([sample], [Given()], ledger=None) for sample in samples)
    started = time.perf_counter()
    assert compare(a, b)["given"].difference.estimate == -1
    assert time.perf_counter() - started < 10


def test_how_long_a_conversation_became_does_not_decide_which_ones_are_paired() -> None:
    def held(answer: str, *more: str) -> Run:
        return judged([{"turns": [f"Opening {n}", *more], "output": answer} for n in range(4)])

    assert list(pairs_of(held("0.5"), held("0.25", "Really?", "Sure?"))) == ["0.5"]
    assert difference(held("0.5"), held("0.25", "Really?", "Sure?")) == (4, -0.25)


def test_labels_belong_to_answers_and_are_found_by_the_ids_of_their_own_run() -> None:
    a, b = judged(rows(WORSE)), judged(rows(BETTER))
    labels = {
        letter: {"given": load_labels(run, "given", {record.sample_id: record.value for record in run.records})}
        for letter, run in (("A", a), ("B", b))
    }
    (corrected,) = compare(a, b, labels=labels).corrected
    assert corrected.result.labeled == corrected.result.n == 6  # the other answers are the same
    gated = gate(
        b,
        max_regression={"given": 0.1},
        baseline=a,
        labels=labels["B"],
        baseline_labels=labels["A"],
    )
    assert gated.decisions[0].estimate == pytest.approx(0.25)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: compare(
            judged(rows(WORSE, context=lambda n: [f"passage {n}"], metadata=lambda n: {"seconds": n / 7})),
            judged([Sample(**row, instructions="Be brief.") for row in rows(BETTER)]),
        ),
        ConfigError,
        (
            "these runs are not comparable: 24 of 24 samples with a different input, reference or "
            "instructions. To pair them by ID, give both datasets a column id with the same IDs, and "
            "score them again. To compare them anyway, use allow_mismatch=True"
        ),
    ),
    (
        lambda: compare(judged(rows(WORSE)), replace(judged(rows(BETTER)), samples=None), allow_mismatch=True),
        ConfigError,
        (
            "these samples have no IDs, so they are paired by what was asked, and the texts of the "
            "second run are not available. To pair them by ID, give both datasets a column id with the "
            "same IDs, and score them again"
        ),
    ),
    (
        lambda: compare(
            judged([chat("Hi.", f"I am {n}.", answers=["No.", "0.25"]) for n in range(5)]),
            judged([chat("Hi.", f"I am {n}." if n < 3 else "What?", answers=["No.", "0.25"]) for n in range(5)]),
            allow_mismatch=True,
        ),
        ConfigError,
        (
            "these samples have no IDs, and it is not clear which samples belong together: 1 question "
            "(such as 'Hi.') was asked more often in one run than in the other, or began conversations "
            "that went on differently. To pair them by ID, give both datasets a column id with the same"
            " IDs, and score them again"
        ),
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
