from __future__ import annotations

import json
from collections import Counter
from typing import Any

from evalstone.datasets.demo import DEMO_DATA
from evalstone.types import Sample


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in DEMO_DATA.read_text(encoding="utf-8").splitlines()]


def test_the_demo_data_is_small_enough_to_ship():
    assert DEMO_DATA.stat().st_size < 250_000


def test_every_line_of_the_demo_data_is_a_sample_with_passages():
    samples = [Sample(**row) for row in rows()]
    assert len(samples) == 60
    assert len({sample.id for sample in samples}) == 60
    assert all(sample.input and sample.output and sample.context for sample in samples)


def test_the_demo_data_has_each_question_once_and_answers_of_several_models():
    assert len({row["input"] for row in rows()}) == 60
    assert len({row["metadata"]["model"] for row in rows()}) == 6


def test_the_demo_data_says_where_it_is_from_and_how_it_was_labelled():
    labels = Counter(row["metadata"]["label"] for row in rows())
    assert labels == {"grounded": 36, "ungrounded": 24}
    assert {row["metadata"]["source"] for row in rows()} == {"RAGTruth"}


def test_the_notice_names_the_authors_and_carries_the_licence():
    notice = DEMO_DATA.with_name("NOTICE.md").read_text(encoding="utf-8")
    assert "RAGTruth" in notice
    assert "Niu" in notice
    assert "Copyright (c) 2023 Particle Media" in notice
