"""Spans as exporters write them: their times, their ids, and what they failed with."""

from __future__ import annotations

import time
from typing import Any

import pytest

from evalstone.agents.formats.records import identifier, records_in, seconds
from tests.traced import attributes, span, spans

NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (NOW, NOW),
        (NOW * 10**3, NOW),
        (NOW * 10**6, NOW),
        (NOW * 10**9, NOW),
        (str(NOW * 10**9), NOW),
        (10**11, 10**8),
        ([NOW, 500_000_000], NOW + 0.5),
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("253402300798000000000", 253_402_300_798),
        ("253402300799000000000", None),
        (0, None),
        (-1, None),
        (True, None),
        ("soon", None),
        ([NOW], None),
    ],
)
def test_a_time_is_read_in_each_form(given: Any, found: float | None) -> None:
    assert seconds(given) == found


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs tzset")
def test_a_time_without_a_zone_is_that_of_greenwich_wherever_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "XXX-9")
        time.tzset()
        found = seconds("2023-11-14T22:13:20")
    time.tzset()
    assert found == NOW


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("00F067AA0BA902B7", "00f067aa0ba902b7"),
        ("0x00f067aa0ba902b7", "00f067aa0ba902b7"),
        ("4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("APBnqgupArc=", "00f067aa0ba902b7"),
        ("AAAAAAAAAAA=", ""),
        ("0" * 16, ""),
        ("mine", "mine"),
        ("x" * 300, "x" * 200),
        (None, ""),
    ],
)
def test_an_id_is_read_in_each_form(given: Any, found: str) -> None:
    assert identifier(given) == found


def test_what_a_log_record_says_itself_comes_before_what_is_in_its_body() -> None:
    body = {"kvlistValue": {"values": attributes({"a": "body", "b": "body"})}}
    (record,) = records_in({"traceId": "1" * 32, "body": body, "attributes": attributes({"a": "own", "c": {}})})
    assert (record.kind, record.attributes["a"], record.attributes["b"]) == ("log", "own", "body")


def test_an_attribute_without_a_value_is_none() -> None:
    (record,) = records_in({"name": "x", "attributes": [{"key": "a", "value": {}}, {"key": "b"}]})
    assert record.attributes == {}


def test_of_several_exceptions_the_last_is_what_a_span_failed_with() -> None:
    events = [{"name": "exception", "attributes": attributes({"exception.message": text})} for text in ("one", "two")]
    (record, *_) = records_in(spans(span(1, "x", {}, status={"code": 2}, events=events)))
    assert record.error == "two"
