"""What a sample must have for a scorer, and what may stand in for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any

from evalstone._core.display import joined
from evalstone.agents.messages import tool_results
from evalstone.errors import ConfigError, unknown
from evalstone.types import SAMPLE_FIELDS, Sample, metadata_at

if TYPE_CHECKING:
    from evalstone.scorers.base import Scorer

METADATA = "metadata."
"""The start of the name of an entry of the metadata. The rest is its name, or a path of names."""
TOOL_RESULTS = "messages.tool_results"
"""The results of the tool calls in the messages."""
_OF_A_CALL = "metadata.target."


@dataclass(frozen=True)
class Need:
    """A sample field that a scorer needs. `metadata.NAME` is an entry of the metadata."""

    field: str
    alternatives: tuple[str, ...] = ()
    """The fields that may stand in for it."""
    parameters: tuple[str, ...] = ()
    """The parameters of the scorer that supply it for all samples."""
    named: tuple[str, ...] = ()
    """Those that `text` names. Every scorer of passages takes them as parameters, which goes without saying."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The field and those that may stand in for it."""
        return (self.field, *self.alternatives)

    @property
    def text(self) -> str:
        """It in words: `messages (or trajectory)`."""
        others = [self._other(name) for name in self.alternatives]
        others += (f"{name}=…" for name in self.named)
        return in_words(self.field) + (f" (or {', '.join(others)})" if others else "")

    def _other(self, name: str) -> str:
        """An alternative in words, which is in the metadata too unless it says otherwise."""
        if not self.field.startswith(METADATA):
            return in_words(name)
        return name.removeprefix(METADATA) if name.startswith(METADATA) else f"the {in_words(name)}"

    def within(self, fields: Collection[str]) -> bool:
        """Whether the field, or one that may stand in for it, is a part of these fields of a sample."""
        return any(root_of(name) in fields for name in self.fields)

    def to_dict(self) -> dict[str, Any]:
        """It as data."""
        return {"field": self.field, "alternatives": [*self.alternatives], "parameters": [*self.parameters]}


def needs_of(scorer: Scorer | type[Scorer]) -> tuple[Need, ...]:
    """What a scorer or its class declares."""
    return tuple(need_of(scorer, name) for name in scorer.required_fields)


def need_of(scorer: Scorer | type[Scorer], name: str) -> Need:
    """What a scorer or its class declares about a required field."""
    parameters = scorer.supplied_by.get(name, ())
    named = () if name in scorer.extractors else parameters
    return Need(name, scorer.alternatives.get(name, ()), parameters, named)


def check_declarations(kind: type[Scorer], passed: Collection[str]) -> None:
    """Check the fields and parameters that a class of scorers declares.

    passed: The fields that `score` is always passed as the sample has them.

    Raises:
        ConfigError: One doesn't exist, or something stands in for a field that isn't required, or that is passed.
    """
    label, parameters = kind.__name__, [field.name for field in fields(kind)]
    _check_fields(f"{label}.required_fields: ", kind.required_fields)
    _check_fields(f"{label}.reads_blank: ", kind.reads_blank)
    _check_fields(f"{label}.alternatives: ", chain.from_iterable(kind.alternatives.values()))
    for name in chain.from_iterable(kind.supplied_by.values()):
        if name not in parameters:
            raise ConfigError(f"{label}.supplied_by: ", unknown("parameter", name, parameters))
    for table in ("alternatives", "supplied_by"):
        for name in getattr(kind, table):
            if name in kind.required_fields and name in passed:
                raise ConfigError(
                    f"{label}.{table}: nothing can stand in for {name}, which score is always passed: write it as a "
                    f"parameter with a default, such as {root_of(name)}=None, and name the field in required_fields"
                )
            if name not in kind.required_fields and table in vars(kind):  # what is inherited may be of use to others
                raise ConfigError(f"{label}.{table}: {name} is no required field; add it to required_fields")


def _check_fields(label: str, names: Iterable[str]) -> None:
    for name in names:
        is_entry = name.startswith(METADATA) and name != METADATA
        if not is_entry and name not in (*SAMPLE_FIELDS, TOOL_RESULTS):
            raise ConfigError(label, unknown("sample field", name, SAMPLE_FIELDS))


def in_words(name: str) -> str:
    """A field in words: `goal in metadata`."""
    if name == TOOL_RESULTS:
        return "tool results in messages"
    if name.startswith(_OF_A_CALL):
        return f"{name.removeprefix(_OF_A_CALL)} of a target's call"
    return f"{name.removeprefix(METADATA)} in metadata" if name.startswith(METADATA) else name


def listed_needs(needs: Sequence[Need]) -> str:
    """Needs in words: `output and context`."""
    return joined([need.text for need in needs])


def described_needs(needs: Iterable[Need]) -> str:
    """The needs of a kind of scorer in words: `output, context`."""
    return ", ".join(need.text for need in needs) or "set by its parameters"


def root_of(name: str) -> str:
    """The sample field that a name is a part of."""
    return name.partition(".")[0]


def value_of(sample: Sample, name: str) -> Any:
    """The value of a field, or of a part of one; None if it has none."""
    if name == TOOL_RESULTS:
        return tool_results(sample.messages) or None
    return (
        metadata_at(sample.metadata, name.removeprefix(METADATA))
        if name.startswith(METADATA)
        else getattr(sample, name)
    )
