"""What processes share of limits, on clocks that are simulated: never more than the limit, and nobody is left out."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.models.limits import Limits
from evalstone.models.shared_limits import LATE, LEAD, SLACK, Others, Slice, seconds_of, slots_for

UNITS = st.floats(0, 1)


class Schedule:
    """The row of a limit on the rate."""

    def __init__(self) -> None:
        self.booked = 0.0

    def book(self, now: float, seconds: float, last: Slice) -> Slice:
        start = max(self.booked - last.rest if self.booked == last.mark else self.booked, now)
        self.booked = start + seconds
        return Slice(start, self.booked, mark=self.booked)


def arrivals(
    limits: Limits, processes: Sequence[tuple[int, float]], tokens: Sequence[int], chance: Sequence[float]
) -> list[tuple[float, int]]:
    """When calls arrive, with their tokens.

    processes: how many calls each takes a slice for, and how long it pauses after a call. chance: what falls out of
    clocks, as shares of the longest: how late a call starts, and how long it is under way. One of five is in time.
    """
    schedule, slices = Schedule(), [Slice() for _ in processes]
    events: list[tuple[float, int, float | None, int]] = [(0.0, at, None, 0) for at in range(len(processes))]
    heapq.heapify(events)
    found: list[tuple[float, int]] = []
    luck = takes = 0
    while events and len(found) < 150:
        now, process, at, number = heapq.heappop(events)
        size, idle = processes[process]
        amount = tokens[number % len(tokens)]
        seconds = seconds_of(limits, amount)
        if at is not None and now <= at + LATE:
            under_way = (SLACK - LATE) * chance[luck % len(chance)] * 0.999
            found.append((now + under_way, amount))
            heapq.heappush(events, (now + idle, process, None, number + 1))
        elif (at := slices[process].take(seconds, now)) is not None:
            takes += 1
            late = 1.5 * LATE * chance[(luck + 1) % len(chance)] * (takes % 5 > 0)
            heapq.heappush(events, (max(at, now) + late, process, at, number))
        elif (later := slices[process].end - LEAD) > now:
            heapq.heappush(events, (later, process, None, number))
        else:
            slices[process] = schedule.book(now, size * seconds, slices[process])
            heapq.heappush(events, (now, process, None, number))
        luck += 1
    return sorted(found)


@given(
    st.sampled_from([1, 7, 100, 2000]),
    st.lists(st.tuples(st.integers(1, 100), st.sampled_from([0.0, 0.01, 0.7])), min_size=1, max_size=5),
    st.lists(UNITS, min_size=1, max_size=40),
)
def test_no_minute_has_more_requests_than_the_limit(
    limit: int, processes: list[tuple[int, float]], chance: list[float]
) -> None:
    found = [at for at, _ in arrivals(Limits(requests_per_minute=limit), processes, [1], chance)]
    assert len(found) == 150
    for first, begin in enumerate(found):
        assert sum(1 for at in found[first:] if at <= begin + 60) <= limit


@given(
    st.lists(st.tuples(st.integers(1, 100), st.sampled_from([0.0, 0.01, 0.7])), min_size=1, max_size=5),
    st.lists(st.integers(1, 300), min_size=1, max_size=9),
    st.lists(UNITS, min_size=1, max_size=40),
)
def test_no_minute_has_more_tokens_than_the_limit_and_those_of_one_request(
    processes: list[tuple[int, float]], tokens: list[int], chance: list[float]
) -> None:
    found = arrivals(Limits(tokens_per_minute=1000, requests_per_minute=50), processes, tokens, chance)
    for first, (begin, _) in enumerate(found):
        within = [amount for at, amount in found[first:] if at <= begin + 60]
        assert sum(within) <= 1000 + max(within)
        assert len(within) <= 50


def test_processes_together_are_as_fast_as_the_limit_nearly_is() -> None:
    for processes in ([(1, 0.0)], [(1, 0.0)] * 4, [(50, 0.0)] * 4):
        found = arrivals(Limits(requests_per_minute=6000), processes, [1], [0.0])
        assert found[-1][0] == pytest.approx(149 * 61 / 6000, rel=0.02)


def test_what_is_over_is_lost_and_the_rest_of_a_slice_is_used_up() -> None:
    slice = Slice(10.0, 13.0)
    assert [slice.take(1.0, 9.0) for _ in range(4)] == [10.0, 11.0, 12.0, None]
    assert (slice.calls, slice.rest) == (3, 0.0)
    late = Slice(10.0, 13.0)
    assert late.take(1.0, 11.0 + LATE) == 11.0
    assert late.take(1.0, 12.5 + LATE) is None
    assert Slice().take(1.0, 0.0) is None
    assert Slice().rest == 0.0


@given(
    st.integers(1, 12),
    st.integers(2, 6),
    st.lists(st.tuples(st.integers(0, 5), UNITS, UNITS), min_size=30, max_size=200),
)
def test_slots_are_never_more_than_the_limit(ceiling: int, members: int, steps: list[tuple[int, float, float]]) -> None:
    allowed, held, wanted = ([0] * members for _ in range(3))
    for who, busy, wants in steps:
        one = who % members
        # Calls start and end between two exchanges, within what this process may use.
        in_use = round(busy * max(held[one], allowed[one]))
        wanted[one] = max(in_use, round(20 * wants))
        before, reported = held[one], max(in_use, min(allowed[one], wanted[one]))
        others = others_of(one, held, wanted)
        allowed[one] = slots_for(ceiling, reported, before, wanted[one], others)
        held[one] = max(allowed[one], reported)
        assert sum(held) <= ceiling


def others_of(one: int, held: Sequence[int], wanted: Sequence[int]) -> Others:
    active = [n for n in range(len(held)) if n != one and (held[n] or wanted[n] > held[n])]
    waiting = any(wanted[n] > held[n] for n in active)
    return Others(sum(held) - held[one], waiting, len(active), sum(n < one for n in active))


@pytest.mark.parametrize(("ceiling", "members"), [(1, 4), (2, 5), (4, 4), (10, 4), (64, 3)])
def test_everybody_gets_slots_of_those_that_all_want(ceiling: int, members: int) -> None:
    allowed, held = [0] * members, [0] * members
    had = [0] * members
    for _ in range(40):
        for one in range(members):
            before, reported = held[one], min(held[one], allowed[one])  # calls above what is allowed have ended
            others = others_of(one, [*held[:one], reported, *held[one + 1 :]], [99] * members)
            allowed[one] = slots_for(ceiling, reported, before, 99, others)
            held[one] = max(allowed[one], reported)
            had[one] += held[one]
        assert sum(held) <= ceiling
    assert min(had) >= 40 * ceiling / members / 4
    if ceiling >= members:
        assert sorted(held) == sorted(ceiling // members + (n < ceiling % members) for n in range(members))


def test_a_call_takes_what_its_requests_or_its_tokens_take() -> None:
    assert seconds_of(Limits(), 500) == 0
    assert seconds_of(Limits(requests_per_minute=61), 500) == pytest.approx(1)
    assert seconds_of(Limits(requests_per_minute=61, tokens_per_minute=610), 50) == pytest.approx(5)
    assert math.isclose(seconds_of(Limits(requests_per_minute=61, tokens_per_minute=610), 5), 1)
