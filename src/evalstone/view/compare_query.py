"""Which samples a comparison lists: filters, order and place, as they are in its address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import unquote

from evalstone.errors import ConfigError, invalid, unknown
from evalstone.view.query import LONGEST, MOST_FIELDS, field_text

Show: TypeAlias = Literal["all", "changed", "different", "regressed", "fixed", "failed", "missing"]
SHOWS: Mapping[Show, str] = {
    "all": "all",
    "changed": "score changed",
    "different": "answers differ",
    "regressed": "regressed",
    "fixed": "fixed",
    "failed": "failed",
    "missing": "missing in one",
}
ORDERS: Mapping[str, str] = {
    "change": "largest change first",
    "worse": "most regressed first",
    "better": "most improved first",
    "order": "order of the dataset",
    "id": "ID, A to Z",
}


@dataclass(frozen=True, kw_only=True)
class CompareQuery:
    """Filters, order and place of a list of samples in several runs.

    Raises:
        ConfigError: A value makes no sense.
    """

    show: Show = "all"
    """What has changed: of the scorer and the run if there are some, otherwise of any."""
    scorer: str = ""
    """The title of a scorer; "" for all."""
    run: str = ""
    """The letter of a run that is compared with the first one; "" for all."""
    q: str = ""
    """Words that are in the sample, its reasons or its evidence, in any run."""
    field: tuple[tuple[str, str], ...] = ()
    """Entries of the metadata with their values."""
    sort: str = "change"
    by: str = ""
    """The entry of the metadata by whose values the runs are compared as well."""
    anyway: str = ""
    """Not "" to compare runs that aren't comparable."""
    after: str = ""
    before: str = ""

    def __post_init__(self) -> None:
        if self.show not in get_args(Show):
            raise ConfigError(unknown("value of show", self.show, get_args(Show)))
        if self.sort not in ORDERS:
            raise ConfigError(unknown("order", self.sort, ORDERS))
        if len(self.field) > MOST_FIELDS:
            raise ConfigError(invalid("field", f"given at most {MOST_FIELDS} times", len(self.field)))

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> CompareQuery:
        """The query in the parameters of an address. Parameters of other pages are ignored, and so are empty ones."""
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {}
        for name, text in pairs:
            if name not in known or not text.strip():
                continue
            if len(text) > LONGEST:
                raise ConfigError(invalid(name, f"at most {LONGEST:,} characters long", text, f"{len(text):,}"))
            if name == "field":
                entry, sign, value = text.partition("=")
                if not sign:
                    raise ConfigError(invalid(name, "NAME=VALUE", text))
                if value:
                    values[name] = (*values.get(name, ()), (unquote(entry), value))
            else:
                values[name] = "1" if name == "anyway" else text
        return cls(**values)

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """The parameters of an address, without defaults. changes: other values of fields."""
        changed = replace(self, **changes)
        pairs: list[tuple[str, str]] = []
        for each in fields(self):
            value = getattr(changed, each.name)
            if each.name == "field":
                pairs += [("field", field_text(name, text)) for name, text in value]
            elif value != each.default:
                pairs.append((each.name, value))
        return pairs

    @property
    def is_filtered(self) -> bool:
        """Whether any sample may be left out."""
        return bool(self.show != "all" or self.q or self.field)
