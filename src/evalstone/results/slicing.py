"""Slices: the samples of a run by a field of their metadata, or by any function of the sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError, unknown
from evalstone.results.run import Run
from evalstone.types import Sample

By: TypeAlias = str | Callable[[Sample], Any]
"""A field of the metadata (`a.b` is entry b of the object in a), or a function of the sample."""

ABSENT = "(absent)"


def field_name(by: By) -> str:
    """What a slicing is called in reports."""
    return by if isinstance(by, str) else getattr(by, "__name__", "slice").strip("<>") or "slice"


def slice_keys(run: Run, by: By) -> Mapping[str, str]:
    """The slice of every sample, by sample id; a sample without the field is in the slice "(absent)".

    Raises ConfigError when the samples are not at hand, and for a field that no sample has.
    """
    if run.dataset is None:
        raise ConfigError(
            f"the samples of run {run.id} are not at hand, and slices need their metadata: a results folder (--out) "
            "holds them, and evalstone report takes --data"
        )
    seen: dict[str, None] = {}
    keys: dict[str, str] = {}
    for sample in run.dataset:
        found = _value(sample, by) if isinstance(by, str) else by(sample)
        keys[sample.id] = ABSENT if found is None else _text(found)
        seen.update(dict.fromkeys(map(str, sample.metadata)))
    if isinstance(by, str) and set(keys.values()) == {ABSENT}:
        raise ConfigError(
            unknown("metadata field", by, seen) if seen else f"no sample has metadata, so none has {by!r}"
        )
    return keys


def _value(sample: Sample, path: str) -> Any:
    if path in sample.metadata:
        return sample.metadata[path]
    found: Any = sample.metadata
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = cast("Mapping[str, Any]", found)[name]
    return found


def _text(value: Any) -> str:
    made = to_jsonable(value)
    return made if isinstance(made, str) else str(made)


def in_order(key: str) -> tuple[bool, float, str]:
    """What slices are sorted by: numbers by size and before words, 2 before 10."""
    try:
        value = float(key)
    except ValueError:
        return True, 0.0, key
    return (False, value, key) if math.isfinite(value) else (True, 0.0, key)


def several(by: By | Iterable[By] | None) -> Sequence[By]:
    """One slicing or several, as a list."""
    if by is None:
        return []
    return [by] if isinstance(by, str) or callable(by) else list(by)
