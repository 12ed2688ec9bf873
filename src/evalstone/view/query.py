"""Which samples a page lists: filters, order and place, as they are in its address."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeAlias, cast, get_args
from urllib.parse import unquote

from evalstone.errors import ConfigError, invalid, unknown
from evalstone.results.losses import Loss

Show: TypeAlias = Literal["all", "imperfect", "score", "skipped", "failed"]
ORDERS: Mapping[str, str] = {
    "goodness": "mean of its scores",
    "order": "order of the dataset",
    "id": "ID",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "scoring time",
    "latency": "latency",
}
"""What samples are ordered by, besides the scorers, which are `score:TITLE`; after a minus sign from high to low."""
SCORE = "score:"
COLUMNS: Mapping[str, str] = {
    "input": "input",
    "answer": "answer",
    "reference": "reference",
    "scores": "scores",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "scoring time",
    "latency": "latency",
}
USUAL_COLUMNS = ("input", "answer", "scores")
LONGEST = 2000
"""The most characters of a text in an address."""
MOST_FIELDS = 50
"""The most entries of the metadata to filter by at once."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """What a page shows, as parameters in its address. A field that holds several values may be there several times."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """The query in the parameters of an address. Parameters of other pages are ignored, and so are empty ones.

        Raises:
            ConfigError: A value makes no sense.
        """
        usual = {each.name: each.default for each in fields(cls)}
        values: dict[str, Any] = {}
        for name, text in pairs:
            if name not in usual or not text.strip():
                continue
            if len(text) > LONGEST:
                raise ConfigError(invalid(name, f"at most {LONGEST:,} characters long", text, f"{len(text):,}"))
            if name in ("min", "max"):
                values[name] = _number(name, text)
            elif name == "field":
                values[name] = (*values.get(name, ()), *_entry(name, text))
            else:
                values[name] = (*values.get(name, ()), text) if isinstance(usual[name], tuple) else text
        if len(entries := values.get("field", ())) > MOST_FIELDS:
            raise ConfigError(invalid("field", f"given at most {MOST_FIELDS} times", len(entries)))
        return cls(**values)

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """The parameters of an address, without defaults. changes: other values of fields."""
        changed = replace(self, **changes)
        pairs: list[tuple[str, str]] = []
        for each in fields(self):
            value = getattr(changed, each.name)
            if value == each.default:
                continue
            if each.name == "field":
                pairs += [(each.name, field_text(name, text)) for name, text in value]
            elif isinstance(value, tuple):
                pairs += [(each.name, text) for text in cast("tuple[str, ...]", value)]
            else:
                pairs.append((each.name, number_text(value) if isinstance(value, float) else str(value)))
        return pairs


@dataclass(frozen=True, kw_only=True)
class SampleQuery(Query):
    """Filters, order and place of a list of samples.

    Raises:
        ConfigError: A value makes no sense.
    """

    q: str = ""
    """Words that are in the sample, its reasons or its evidence; a text in double quotes is in it as it is."""
    show: Show = "all"
    """Samples with an outcome of this kind: of the scorer if there is one, otherwise of any."""
    scorer: str = ""
    """The title of a scorer; "" for the mean over all."""
    min: float | None = None
    """The lowest score, of the scorer, or, without one, the mean over all on a scale from 0 (worst) to 1 (best)."""
    max: float | None = None
    reason: str = ""
    """Why a scorer has no score, or what is wrong with a score, as the page lists it."""
    loss: Loss | Literal[""] = ""
    """Where low answers are lost."""
    field: tuple[tuple[str, str], ...] = ()
    """Entries of the metadata with their values."""
    sort: str = "goodness"
    """One of `ORDERS`, or `score:TITLE`; after a minus sign from high to low."""
    column: tuple[str, ...] = USUAL_COLUMNS
    """What is shown of a sample: of `COLUMNS`, or the score `score:TITLE`."""
    after: str = ""
    """The place of the sample before the first one that is listed."""
    before: str = ""
    """The place of the sample after the last one that is listed."""

    def __post_init__(self) -> None:
        if self.show not in get_args(Show):
            raise ConfigError(unknown("value of show", self.show, get_args(Show)))
        for name in ("min", "max"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ConfigError(invalid(name, "a number", value))
        if self.loss not in ("", *get_args(Loss)):
            raise ConfigError(unknown("value of loss", self.loss, get_args(Loss)))
        order = self.sort.removeprefix("-")
        if order not in ORDERS and not order.startswith(SCORE):
            raise ConfigError(unknown("order", order, ORDERS))
        for name in self.column:
            if name not in COLUMNS and not name.startswith(SCORE):
                raise ConfigError(unknown("column", name, COLUMNS))

    @property
    def filters(self) -> SampleQuery:
        """The query without order, columns and place."""
        usual = SampleQuery()
        return replace(self, sort=usual.sort, column=usual.column, after="", before="")

    @property
    def is_filtered(self) -> bool:
        """Whether any sample may be left out."""
        return self.filters != SampleQuery()

    @property
    def descending(self) -> bool:
        """Whether the order is from high to low."""
        return self.sort.startswith("-")

    @property
    def order(self) -> str:
        """What the samples are ordered by."""
        return self.sort.removeprefix("-")


def field_text(name: str, value: str) -> str:
    """An entry of the metadata with its value, as in an address. An equals sign in the name is escaped."""
    return f"{name.replace('%', '%25').replace('=', '%3D')}={value}"


def number_text(value: float | None) -> str:
    """A number as in an address, with all of its digits; "" for None."""
    return "" if value is None else repr(value).removesuffix(".0")


def _entry(name: str, text: str) -> tuple[tuple[str, str], ...]:
    entry, sign, value = text.partition("=")
    if not sign:
        raise ConfigError(invalid(name, "NAME=VALUE", text))
    return ((unquote(entry), value),) if value else ()


def _number(name: str, text: str) -> float:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise ConfigError(invalid(name, "a number", text)) from None
