"""Whatever an endpoint sends, a question ends with an answer or an error of ours."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.hostile_serving import HostileServer, http, serving_hostile
from tests.odd_replies import batch_cases, read_batch, read_reply, replies

CASES = 200


@pytest.fixture(scope="module")
def server() -> Generator[HostileServer]:
    with pytest.MonkeyPatch.context() as patch, serving_hostile(lambda _: http(b"")) as started:
        patch.setitem(os.environ, "OPENAI_BASE_URL", started.url)
        patch.setitem(os.environ, "ANTHROPIC_BASE_URL", started.url)
        yield started


odd = settings(
    max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@odd
@given(case=replies())
def test_any_reply_is_an_answer_or_an_error_of_the_question(server: HostileServer, case: Any) -> None:
    read_reply(server, case)


@odd
@given(case=batch_cases())
def test_any_file_of_results_is_read(server: HostileServer, case: Any) -> None:
    read_batch(server, case)
