"""The language of a sample."""

from __future__ import annotations

from evalstone._core.languages import language_of
from evalstone.types.samples import Sample


def sample_language(sample: Sample) -> str:
    """The language of the first text of a sample that has a clear one: its output, first passage, input, reference.

    A key of `LANGUAGE_NAMES`; "" if none is clear. Takes some ten microseconds.
    """
    passages = sample.context or ()
    texts = (sample.output, passages[0] if passages else None, sample.input, sample.reference)
    return next((language for text in texts if text and (language := language_of(text))), "")
