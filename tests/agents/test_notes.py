"""Notes of readers are counted by reason, with the first example of each."""

from __future__ import annotations

from evalstone.agents.notes import Notes
from evalstone.types import Message


def test_a_reason_is_counted_and_has_its_first_example() -> None:
    notes = Notes()
    notes.add("a cut text", "t1", "span 7")
    notes.add("a cut text", "t2", "span 8")
    notes.add("no answer", "t2")
    assert notes.lines() == ("2 × a cut text; first in trace 't1', span 7", "1 × no answer; first in trace 't2'")


def test_what_has_no_id_is_shown_by_its_example_alone() -> None:
    notes = Notes()
    notes.add("a cut text", "", "span 7")
    notes.add("no answer", "")
    assert notes.lines() == ("1 × a cut text; first span 7", "1 × no answer")


def test_the_notes_of_messages_are_counted_by_what_stands_before_their_colon() -> None:
    notes = Notes("sample")
    messages = [Message(role="user", notes=("a part: 'x', with a: b", "time 10:30")), Message(role="assistant")]
    notes.add_messages(messages, "s1")
    notes.add_messages(messages[:1], "s2")
    assert notes.lines() == (
        "2 × a part; first in sample 's1', 'x', with a: b",
        "2 × time 10:30; first in sample 's1'",
    )
