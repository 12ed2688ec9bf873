"""The garbage collector's threshold during runs."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

from evalstone import Sample, evaluate
from evalstone._core.garbage import OBJECTS_OF_A_CALL, YOUNG_OBJECTS, rare_collections
from evalstone.scorers import FunctionScorer

USUAL = 700


@pytest.fixture(autouse=True)
def usual() -> Generator[None]:
    before = gc.get_threshold()
    gc.set_threshold(USUAL, *before[1:])
    yield
    gc.set_threshold(*before)


def young() -> int:
    return gc.get_threshold()[0]


def test_garbage_is_collected_less_often_until_the_last_of_several_runs_ends() -> None:
    older = gc.get_threshold()[1:]
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold() == (YOUNG_OBJECTS, *older)
        assert gc.get_threshold() == (YOUNG_OBJECTS, *older)
    assert gc.get_threshold() == (USUAL, *older)


def test_of_several_runs_the_one_with_most_calls_in_flight_sets_the_threshold() -> None:
    most = YOUNG_OBJECTS + 100 * OBJECTS_OF_A_CALL
    with rare_collections(10):
        with rare_collections(100):
            assert young() == most
            with rare_collections(50):
                assert young() == most
        assert young() == most
    assert young() == USUAL
    with rare_collections(10):
        assert young() == YOUNG_OBJECTS + 10 * OBJECTS_OF_A_CALL
    assert young() == USUAL


@pytest.mark.parametrize("own", [0, YOUNG_OBJECTS + 1])
def test_a_threshold_that_is_off_or_higher_stays(own: int) -> None:
    gc.set_threshold(own)
    with rare_collections():
        assert young() == own
    assert young() == own


def test_a_threshold_that_is_set_meanwhile_stays() -> None:
    with rare_collections():
        gc.set_threshold(900)
    assert young() == 900


def test_after_an_error_the_threshold_is_as_before() -> None:
    with pytest.raises(ValueError, match="stop"), rare_collections():
        raise ValueError("stop")
    assert young() == USUAL


def test_a_run_collects_less_often() -> None:
    seen: list[int] = []

    def note(output: str) -> float:
        seen.append(young())
        return 1.0

    evaluate([Sample(output="a"), Sample(output="b")], FunctionScorer(note), ledger=None, concurrency=64)
    assert seen == [YOUNG_OBJECTS + 2 * OBJECTS_OF_A_CALL] * 2  # there are no more calls than results
    assert young() == USUAL
