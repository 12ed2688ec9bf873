from __future__ import annotations

import functools
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import Failed, Score, score
from evalstone._core import matching
from evalstone._core.matching import matches
from evalstone.errors import OutcomeError


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "TIME_LIMIT", 0.3)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)+$", "a" * 40 + "b"),
        (r"^(\w+\s?)*$", "word " * 20 + "!"),
        (r"(a|a)*b", "a" * 40),
        (r"(x+x+)+y", "x" * 40),
        ("(?:a|ab|b)" * 40 + "c", "ab" * 60),
        (r".*a.*b.*c.*d", "a" * 3000),
    ],
)
def test_a_pattern_that_would_take_forever_fails_with_the_limit(pattern: str, text: str) -> None:
    for options in ({"pattern": pattern}, {"reference": pattern}):
        started = time.monotonic()
        own = {"name": "regex", **{name: value for name, value in options.items() if name == "pattern"}}
        outcome = score(own, output=text, reference=options.get("reference"), ledger=None).outcome
        assert isinstance(outcome, Failed)
        assert "than 0.3 seconds" in outcome.error
        assert time.monotonic() - started < 5
    assert matches(re.compile("(a+)+"), "b" * 40 + "a", whole=False)


@given(
    pattern=st.sampled_from(
        [r"(a+b?)+", r"(?:a|b)*", r"a*b*", r"(?i)(A)+", r"(?s)a.b", r"[+*](a)*", r"\(+", "a{1,2}b?"]
    ),
    text=st.text(alphabet="abAB\n+*(é\ud800", max_size=60),
    whole=st.booleans(),
)
def test_the_process_says_what_python_says(pattern: str, text: str, whole: bool) -> None:
    compiled = re.compile(pattern)
    expected = (compiled.fullmatch(text) if whole else compiled.search(text)) is not None
    assert matches(compiled, text, whole=whole) is expected


def test_ordinary_patterns_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_worker", None)
    assert matches(re.compile(r"\d{4}-\d\d-\d\d"), "on 2020-01-02 " * 100_000, whole=False)
    assert matches(re.compile(r"[*+][?|]"), "*?" * 100_000, whole=False)
    assert matches(re.compile(r"\bParis\b"), "In Paris.", whole=False)
    assert matches(re.compile(r"^\s*\{.*\}\s*$"), "{}" * 40, whole=True)


@pytest.mark.parametrize("pattern", [r"x*y*z*w", r"(?:x|y+){9}w", r"(?:x+)+w"])
def test_patterns_that_may_be_slow_are_left_to_the_process(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    class Worker:
        def matches(self, request: list[object]) -> bool:
            return request[0] == pattern

    monkeypatch.setattr(matching, "_worker", Worker())
    assert matches(re.compile(pattern), "a" * 500, whole=False)


def test_each_thread_has_the_answer_to_its_own_question() -> None:
    texts = ["b" * 40 + "a" * (number % 2) for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(functools.partial(matches, re.compile("(a+)+"), whole=False), texts))
    assert found == [text.endswith("a") for text in texts]


def test_a_forked_process_has_a_worker_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, text = re.compile("(a+)+"), "b" * 40
    assert not matches(pattern, text, whole=False)
    parents = matching._worker  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(matching, "_worker", parents)
    matching._after_fork()  # pyright: ignore[reportPrivateUsage]
    assert not matches(pattern, text, whole=False)
    own = matching._worker  # pyright: ignore[reportPrivateUsage]
    own.close()
    assert own is not parents
    assert parents.process is not None
    assert parents.process.poll() is None


def test_a_process_that_was_killed_is_told_and_started_again() -> None:
    pattern, text = re.compile("(a+)+"), "b" * 40
    assert not matches(pattern, text, whole=False)
    worker = matching._worker  # pyright: ignore[reportPrivateUsage]
    assert worker.process is not None
    worker.process.kill()
    worker.process.wait()
    with pytest.raises(OutcomeError, match="ended early"):
        matches(pattern, text, whole=False)
    assert not matches(pattern, text, whole=False)
    assert isinstance(score("regex(pattern='(a+)+')", output=text, ledger=None).outcome, Score)
