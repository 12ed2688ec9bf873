"""Human labels: read, used to correct a mean, and asked for where they say most."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalstone import ConfigError, DataError, EvalstoneError
from evalstone.results.comparable_runs import pair_runs
from evalstone.results.compare import compare
from evalstone.results.gate import gate
from evalstone.results.human_labels import corrected, labeled_pairs, load_labels, select_for_labeling
from evalstone.results.views.run import run_view
from evalstone.stats.labeling import score_strata
from evalstone.types import note
from tests.runs import Given, Harm, run_of

ANSWERS = [str(number % 5 / 4) for number in range(40)]


def test_labels_come_from_a_file_of_ids_and_labels_in_words_or_numbers(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("id,label\ns1,yes\ns2,0.25\ns3,no\ns4,\n")
    assert load_labels(run_of(ANSWERS), "given", tmp_path / "l.csv") == {"s1": 1.0, "s2": 0.25, "s3": 0.0}


def test_words_are_on_the_scorers_scale_and_turned_round_where_lower_is_better() -> None:
    rows = [{"id": "s1", "label": "supported"}]
    assert load_labels(run_of(ANSWERS, [Given(scale=10)]), "given", rows) == {"s1": 10.0}
    assert load_labels(run_of(ANSWERS, [Harm()]), "harm", rows) == {"s1": 0.0}


def test_an_id_that_no_sample_has_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("id,label\ns1,yes\nzz,no\n")
    with pytest.raises(DataError, match=r"l\.csv: \w+ \d.*'?zz"):
        load_labels(run_of(ANSWERS), "given", tmp_path / "l.csv")


def test_labels_that_are_all_lower_by_a_constant_move_the_mean_by_it() -> None:
    run = run_of([str(0.2 + float(answer) / 2) for answer in ANSWERS])
    labels = {record.sample_id: (record.value or 0.0) - 0.1 for record in list(run)[:20]}
    found = corrected(run, "given", labels)
    assert found.result.raw is not None
    assert found.result.estimate is not None
    assert found.result.estimate.estimate == pytest.approx(found.result.raw.estimate - 0.1)
    assert found.result.bias is not None
    assert found.result.bias.estimate == pytest.approx(0.1)
    assert (found.result.labeled, found.result.n) == (20, 40)


def test_labeled_samples_without_a_score_are_left_out_and_told() -> None:
    found = corrected(run_of(["0.5"] * 8 + ["skip"]), "given", {"s1": 0.5, "s2": 0.4, "s3": 0.6, "s9": 1.0})
    assert found.notes == (note("labels_unscored", "caution", "given", labels=1),)


def test_samples_to_label_are_unlabeled_spread_over_the_scores_and_the_same_each_time() -> None:
    run = run_of(ANSWERS)
    given = {f"s{number}": 1.0 for number in range(1, 6)}
    chosen = select_for_labeling(run, "given", given, count=10)
    assert len(set(chosen)) == 10
    assert not set(chosen) & set(given)
    assert len({ANSWERS[int(name[1:]) - 1] for name in chosen}) >= 4
    assert chosen == select_for_labeling(run, "given", given, count=10)
    assert chosen != select_for_labeling(run, "given", given, count=10, seed=1)


def test_no_more_samples_are_chosen_than_there_are() -> None:
    assert sorted(select_for_labeling(run_of(["0.5", "1.0", "skip"]), "given", {}, count=9)) == ["s1", "s2"]


def test_slices_with_ten_labels_are_corrected_and_others_say_that_they_have_too_few() -> None:
    data = [{"kind": "x" if number < 30 else "y"} for number in range(40)]
    run = run_of([str(0.2 + float(answer) / 2) for answer in ANSWERS], metadata=data)
    chosen = [record for record in run if int(record.sample_id[1:]) % 2 or record.sample_id == "s2"]
    labels = {record.sample_id: (record.value or 0.0) - 0.1 for record in chosen}
    found = corrected(run, "given", labels, slice_by="kind")
    x, y = found.slices
    assert (x.field, x.key, x.result.labeled, x.result.n) == ("kind", "x", 16, 30)
    assert x.result.raw is not None
    assert x.result.estimate is not None
    assert x.result.estimate.estimate == pytest.approx(x.result.raw.estimate - 0.1, abs=0.005)
    assert (y.key, y.result.labeled, y.result.estimate) == ("y", 5, None)
    view = run_view(run, corrected=[found])
    (section,) = (part for part in (*view.sections, *view.details) if part.title.startswith("Corrected"))
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in section.tables[1].rows}
    assert rows["kind=x"][1] == f"{x.result.estimate.estimate:.3f}"
    assert rows["kind=y"][1:3] == ["-", "too few labels"]
    assert any("fewer than 10 labels" in note for note in section.notes)


def test_corrected_slices_are_on_the_scorers_scale() -> None:
    answers, data = [str(0.2 + float(answer) / 2) for answer in ANSWERS], [{"kind": "x"}] * 40
    ends: list[float] = []
    for scale in (1, 10):
        run = run_of(answers, [Given(scale=scale)], metadata=data)
        labels = {record.sample_id: (record.value or 0.0) - 0.1 * scale for record in list(run)[:20]}
        found = corrected(run, "given", labels, slice_by="kind")
        (part,) = found.slices
        assert part.result == found.result
        assert part.result.estimate is not None
        ends.append(part.result.estimate.high or 0.0)
    assert ends[1] == pytest.approx(10 * ends[0])


def test_strata_of_labeled_pairs_are_those_of_the_run_that_the_labels_were_chosen_for() -> None:
    a, b = run_of(ANSWERS), run_of([*ANSWERS[::-1][:39], "0.3"])
    ((pair,), _) = pair_runs(a, b, allow_mismatch=True)
    first, second = score_strata(pair.known.a), score_strata(pair.known.b)
    assert first != second
    both = {"s1": 0.5, "s2": 0.5}
    assert labeled_pairs(pair.known, pair.pairing, (both, both), ())["strata"] == first
    assert labeled_pairs(pair.known, pair.pairing, ({**both, "s3": 0.5}, both), ())["strata"] == second
    assert labeled_pairs(pair.known, pair.pairing, ({**both, "s3": 0.5}, {**both, "s4": 0.5}), ())["strata"] == tuple(
        zip(first, second, strict=True)
    )


def test_errors_of_labels_name_no_option_that_only_calibrate_has() -> None:
    for label, told in ((7, r"must be in \[0, 1\], not 7"), ("perhaps", "supported or unsupported, not 'perhaps'")):
        with pytest.raises(DataError, match=told):
            load_labels(run_of(ANSWERS), "given", [{"id": "s1", "label": label}, {"id": "s2", "label": 0.5}])


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: corrected(run_of(["0.5", "skip"]), "given", {"s2": 1.0}),
        ConfigError,
        "no labeled sample has a score of given: 1 label",
    ),
    (
        lambda: load_labels(run_of(ANSWERS), "given", [{"id": "s1", "verdict_of_ann": 1}]),
        DataError,
        "the labels: no column of labels (columns: verdict_of_ann); name it label",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


def test_labels_may_be_a_path_wherever_they_are_taken(tmp_path: Path) -> None:
    before, run = run_of(ANSWERS), run_of([str(1 - float(answer)) for answer in ANSWERS])
    file = tmp_path / "l.csv"
    file.write_text("id,label\n" + "".join(f"s{n},{'yes' if n % 2 else 0.25}\n" for n in range(1, 31)))
    read = load_labels(run, "given", file)
    assert corrected(run, "given", str(file)) == corrected(run, "given", read)
    by_path, by_value = (gate(run, min={"given": 0.1}, labels={"given": of}) for of in (file, read))
    assert by_path.decisions == by_value.decisions
    by_path, by_value = (compare(before, run, labels={"A": {"given": of}, "B": {"given": of}}) for of in (file, read))
    assert by_path.corrected == by_value.corrected
