"""Criteria of a rubric, as scorers and the metadata of samples have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from evalstone._core.declarations import TEXT, check_settings
from evalstone._core.guards import is_mapping, is_sequence
from evalstone._core.literals import written_list
from evalstone._core.parsing import first_repeated
from evalstone._core.text import lines_of
from evalstone._core.values import NamesArguments
from evalstone.errors import ConfigError, DataError, invalid, repeated, unknown
from evalstone.types.samples import metadata_at

OWN_RUBRIC = "rubrics"
"""The column, or entry of the metadata, with the criteria of a sample. The command `rubrics` writes it."""
RUBRICS = (OWN_RUBRIC, "rubric", "requestContext.rubric", "additionalContext.rubric")
"""Where a sample's metadata may have a rubric, the first before the others. @mastra/evals looks for it in the context
of the request."""


@dataclass(frozen=True)
class Criterion(metaclass=NamesArguments):
    """One requirement for an answer.

    Attributes:
        required: If False, the criterion is judged and reported but doesn't affect the score.
    """

    description: Annotated[str, TEXT]
    required: bool = True

    def __post_init__(self) -> None:
        check_settings(self, type(self).__name__)

    @classmethod
    def parse(cls, value: object) -> Criterion:
        """Return a criterion from a text, a Criterion or a table. Raises ConfigError for anything else."""
        if isinstance(value, Criterion):
            return value
        if isinstance(value, str):
            return cls(value)
        if is_mapping(value):  # Parquet fills up objects with null
            value = {name: entry for name, entry in value.items() if entry is not None}
        else:
            raise ConfigError(f"criteria: a criterion is a text, a Criterion or a table, not {type(value).__name__}")
        known = [field.name for field in fields(cls)]
        for name in value:
            if name not in known:
                raise ConfigError("criterion: ", unknown("field", str(name), known))
        if "description" not in value:
            raise ConfigError("criteria: a criterion's table needs a description")
        return cls(**value)


def parse_criteria(value: object) -> tuple[Criterion, ...]:
    """The criteria in a checklist, or a list of texts, Criterion values and tables. The list may be written as text.

    Raises ConfigError otherwise, and if a criterion is listed twice.
    """
    if isinstance(value, str):
        value = written_list(value)
    if isinstance(value, str):
        criteria = tuple(map(Criterion, lines_of(value)))
    elif is_sequence(value):
        criteria = tuple(map(Criterion.parse, value))
    else:
        raise ConfigError(invalid("criteria", "a checklist or a list of criteria", value, type(value).__name__))
    if twice := first_repeated([criterion.description for criterion in criteria]):
        raise ConfigError(repeated("criteria", twice, f"criteria: {twice!r} is listed twice"))
    return criteria


def rubric_of(metadata: Mapping[str, Any]) -> tuple[Criterion, ...]:
    """The criteria in the metadata of a sample; empty if it has none.

    Raises DataError for what are no criteria, and for an empty list of `rubrics`.
    """
    found = next((rubric for path in RUBRICS if (rubric := metadata_at(metadata, path))), ())
    own = metadata_at(metadata, OWN_RUBRIC)
    if own is None and not found:
        return ()
    try:
        if own is not None and not own and not isinstance(own, str):
            raise ConfigError(f"{OWN_RUBRIC} must have a criterion, or be absent; it is empty")
        return parse_criteria(found)
    except ConfigError as error:
        raise DataError("the rubric in metadata: ", error) from None
