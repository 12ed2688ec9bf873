"""Notes of readers are counted by reason, with the first example of each."""

from __future__ import annotations

import pytest

from evalstone.agents.notes import Notes
from evalstone.types import Message


@pytest.mark.parametrize(
    ("added", "lines"),
    [
        (
            [("a cut text", "t1", "span 7"), ("a cut text", "t2", "span 8"), ("no answer", "t2")],
            ["2 × a cut text; first in trace 't1', span 7", "1 × no answer; first in trace 't2'"],
        ),
        ([("a cut text", "", "span 7"), ("no answer", "")], ["1 × a cut text; first span 7", "1 × no answer"]),
    ],
)
def test_a_reason_is_counted_and_has_its_first_example(added: list[tuple[str, ...]], lines: list[str]) -> None:
    notes = Notes()
    for each in added:
        notes.add(*each)
    assert list(notes.lines()) == lines


def test_the_notes_of_messages_are_counted_by_what_stands_before_their_colon() -> None:
    notes = Notes("sample")
    messages = [Message(role="user", notes=("a part: 'x', with a: b", "time 10:30")), Message(role="assistant")]
    notes.add_messages(messages, "s1")
    notes.add_messages(messages[:1], "s2")
    part, time = notes.lines()
    assert part.startswith("2 × a part; first")
    assert part.endswith(" 's1', 'x', with a: b")
    assert time.startswith("2 × time 10:30; first")
