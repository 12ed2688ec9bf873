"""Verbosity, wording about who wrote it, and formatting: the same words in other clothes."""

from __future__ import annotations

import re

from evalstone._core.text import sentences
from evalstone.judge_quality.perturbations.base import Edit, on_output

OPENING = "Thank you for the question; it is a good one, and I am happy to go through it with you step by step."
CLOSING = "I hope that this was clear. Please do not hesitate to come back to me if you would like to hear more."
_STRUCTURED = re.compile(r"^\s*(?:#|[-*•|>]|\d+[.)]|```)", re.MULTILINE)


def padded(text: str) -> str:
    """With polite sentences before and behind it that say nothing."""
    return f"{OPENING}\n\n{text}\n\n{CLOSING}"


def said_twice(text: str) -> str:
    """Said a second time, word by word."""
    return f"{text}\n\nOnce more, to sum up:\n\n{text}"


def by_model(text: str) -> str:
    """Signed by a language model."""
    return f"As an AI language model, trained as you were, I answer as follows.\n\n{text}"


def by_expert(text: str) -> str:
    """Signed by a person of authority."""
    return f"As a professor with thirty years in this field, I answer as follows.\n\n{text}"


def bulleted(text: str) -> str | None:
    """A bullet for each sentence; None where the text has lists or headings of its own, or one sentence only."""
    found = _plain_sentences(text)
    return None if found is None else "\n".join(f"- {sentence}" for sentence in found)


def bold(text: str) -> str | None:
    """Each sentence in bold; None as for bullets, and where asterisks are part of the text."""
    found = _plain_sentences(text)
    return None if found is None or "*" in text else " ".join(f"**{sentence}**" for sentence in found)


def headed(text: str) -> str:
    """Under a Markdown heading."""
    return f"## Answer\n\n{text}"


def line_by_line(text: str) -> str | None:
    """Each sentence in a paragraph of its own; None as for bullets."""
    found = _plain_sentences(text)
    return None if found is None else "\n\n".join(found)


def _plain_sentences(text: str) -> tuple[str, ...] | None:
    """The sentences of running text; None for a text with lists, headings or tables, or with one sentence."""
    found = tuple(sentences(text))
    if len(found) < 2 or _STRUCTURED.search(text) or "".join("".join(found).split()) != "".join(text.split()):
        return None
    return found


_LENGTH = "length: it says nothing more"
_LOOKS = "how it looks: the words are the same"
DRESSING = (
    Edit("padded", "verbosity", _LENGTH, on_output(padded)),
    Edit("said_twice", "verbosity", _LENGTH, on_output(said_twice)),
    Edit(
        "signed_by_model", "self-preference", "who says that it wrote it: a model like the judge", on_output(by_model)
    ),
    Edit("signed_by_expert", "self-preference", "who says that it wrote it: an authority", on_output(by_expert)),
    Edit("bulleted", "formatting", _LOOKS, on_output(bulleted)),
    Edit("bold", "formatting", _LOOKS, on_output(bold)),
    Edit("headed", "formatting", _LOOKS, on_output(headed)),
    Edit("line_by_line", "formatting", _LOOKS, on_output(line_by_line)),
)
