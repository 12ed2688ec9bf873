"""Our scorers give the recorded scores for other words too, and for texts in several messages."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from tests.parity.adapters import ADAPTERS
from tests.parity.adapters.common import texts_of
from tests.parity.adapters.recorded import excerpts
from tests.parity.cases import check_all, read_cases
from tests.parity.test_parity import BUNDLED, WHOLE, faithfulness
from tests.parity.variations import JOINED_BY, SHORT, in_messages, variations

pytestmark = pytest.mark.slow


def different(file: Path, seed: int) -> list[str]:
    verdicts = check_all(variations(read_cases(file), seed), edge=False)
    assert len(verdicts) > 500
    return [verdict.told for verdict in verdicts if not verdict.equal]


@pytest.mark.parametrize("seed", [1, 2])
def test_variations_of_bundled_cases_give_the_recorded_scores(seed: int) -> None:
    assert different(BUNDLED / "scores.jsonl", seed) == []


@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"the whole set of recorded cases is not at {WHOLE}")
def test_variations_of_the_whole_set_give_the_recorded_scores() -> None:
    assert different(WHOLE / "scores.jsonl", 3) == []


def test_messages_that_are_joined_another_way_give_another_score() -> None:
    options = {"args": ["a b"]}
    case: dict[str, Any] = {"id": "c", "scorer": "check-equals", "options": options, "score": 1, "judge_answers": []}
    whole, cut, spaced, other = check_all(
        [
            {**case, "output": "a b"},
            {**case, "output_messages": ["a", " b"]},
            {**case, "output_messages": ["a", "b"]},
            {**case, "output_messages": ["a b", "a b"]},
        ],
        edge=False,
    )
    assert [verdict.equal for verdict in (whole, cut, spaced, other)] == [True, True, False, False]


@pytest.mark.parametrize("name", JOINED_BY)
def test_a_case_is_cut_where_the_package_joins(name: str) -> None:
    generator = random.Random(name)
    case = {"id": "c", "scorer": name, "input": "a, b c, d", "output": "e f, g h, i"}
    cut = [in_messages(case, generator) for _ in range(20)]
    assert max(len(one["output_messages"]) for one in cut) > 2
    for one in cut:
        assert (JOINED_BY[name] or "").join(one["output_messages"]) == "e f, g h, i"


def test_adapters_give_messages_as_they_were_recorded() -> None:
    for case in read_cases(BUNDLED / "scores.jsonl"):
        _, sample, _ = ADAPTERS[case["scorer"]](case)
        if sample.trajectory is not None:
            continue
        for side, role in (("input", "user"), ("output", "assistant")):
            said = [message.content for message in sample.messages if message.role == role]
            assert [text for text in said if text] == [text for text in texts_of(case, side) if text], case["id"]


@pytest.mark.parametrize("source", [*SHORT, "Ada wrote three long\nnotes, the text, and 3.5 km.\u2028Fin."])
def test_excerpts_are_different_parts_of_their_source(source: str) -> None:
    found = list(itertools.islice(excerpts(source), 50))
    assert all(excerpt in source for excerpt in found)
    assert len(set(map(str.casefold, found))) == len(found)
    assert found or not any(map(str.isalpha, source))


def test_a_judge_that_lists_more_than_there_are_excerpts_may_be_refused() -> None:
    claims = {"claims": [f"claim {number}" for number in range(12)]}
    verdicts = {"verdicts": [{"verdict": "yes", "reason": "r"}] * 12}
    case = {**faithfulness(claims, verdicts), "score": 1}
    few, many = check_all([{**case, "output": "Yes"}, {**case, "output": "Yes, Ada wrote five notes."}], edge=False)
    assert few.equal
    assert few.invention is not None
    assert "listed more texts" in few.invention.what
    assert many.equal
    assert many.invention is None
