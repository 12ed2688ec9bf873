"""Which samples a comparison lists: filters, order and place, as they are in its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from evalstone.errors import ConfigError, unknown
from evalstone.view.query import Query

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
class CompareQuery(Query):
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

    @property
    def is_filtered(self) -> bool:
        """Whether any sample may be left out."""
        return bool(self.show != "all" or self.q or self.field)
