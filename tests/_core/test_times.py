"""Times, in every time zone."""

from __future__ import annotations

import time
from collections.abc import Generator
from datetime import UTC, datetime

import pytest

from evalstone._core.times import iso_time, local_time, utc_time
from evalstone.view.names import age, when

pytestmark = pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone can't be changed here")


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The time zone of the machine. Those of the tests need no files of zones."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


BERLIN, NEW_YORK, AUCKLAND = "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3"


@pytest.mark.parametrize(
    ("zone", "started", "shown"),
    [
        ("UTC0", "2026-10-25T00:30:00+00:00", "2026-10-25 00:30"),
        (BERLIN, "2026-10-25T00:30:00+00:00", "2026-10-25 02:30"),  # the first of two hours with this name
        (BERLIN, "2026-10-25T01:30:00+00:00", "2026-10-25 02:30"),
        (BERLIN, "2026-03-29T01:00:00+00:00", "2026-03-29 03:00"),  # there is no 02:00
        (BERLIN, "2026-03-29T02:30:00+05:30", "2026-03-28 22:00"),
        (BERLIN, "2026-07-01T12:00:00", "2026-07-01 14:00"),  # UTC, as everywhere
        (NEW_YORK, "2026-01-01T03:00:00+00:00", "2025-12-31 22:00"),
        (AUCKLAND, "2026-12-31T12:00:00Z", "2027-01-01 01:00"),
        (NEW_YORK, "0001-01-01T00:00:00+00:00", "1-01-01 00:00"),
        (AUCKLAND, "9999-12-31T23:59:00+00:00", "9999-12-31 23:59"),
    ],
    indirect=["zone"],
)
@pytest.mark.usefixtures("zone")
def test_a_time_is_shown_where_this_runs(started: str, shown: str) -> None:
    assert when(started).lstrip("0") == shown


@pytest.mark.parametrize("zone", ["UTC0", BERLIN, AUCKLAND], indirect=True)
@pytest.mark.usefixtures("zone")
def test_a_time_without_a_zone_is_in_utc() -> None:
    now = datetime.now(UTC)
    assert age(now.replace(tzinfo=None).isoformat()) == age(now.isoformat()) == "just now"
    assert local_time(iso_time("2026-07-01T12:00:00")) == datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("seconds", "time"), [(0, "1970-01-01T00:00:00"), (-1.5, "1969-12-31T23:59:58.500000")])
def test_seconds_may_be_before_1970(seconds: float, time: str) -> None:
    assert utc_time(seconds).isoformat() == f"{time}+00:00"
    assert utc_time(seconds) == datetime.fromtimestamp(seconds, UTC)
