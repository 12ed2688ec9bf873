"""How a calibration and an audit are done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evalstone.errors import ConfigError
from evalstone.results.calibration.values import Method
from evalstone.run.budget import StopSignal


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How the judge is asked, as for `evaluate`.

    concurrency: calls under way at once, at most. fresh: ask again what the ledger has. budget: US dollars that it may
    pay. mapping: sample field to column. progress: show a progress bar. stop: ends it from outside.
    """

    concurrency: int = 32
    fresh: bool = False
    budget: float | None = None
    mapping: Mapping[str, str] | None = None
    progress: bool = False
    stop: StopSignal | None = None


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """How labels are read and what is learned from them.

    columns: the columns of labels, one an annotator; without, those called label, human_label and the like. positive:
    words that mean yes, where they are not known ones; every other label then means no. label_range: the lowest and the
    highest number that annotators could give. cut: from which label on, on the scorer's scale, the truth is yes; half
    the scale unless it is given. maximise: the measure that the threshold is to maximise. method: "platt", "isotonic",
    or "auto", whichever does better on samples held out. Raises ConfigError for one text in the place of several.
    """

    columns: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    label_range: tuple[float, float] | None = None
    cut: float | None = None
    maximise: str = "balanced_accuracy"
    method: Method = "auto"

    def __post_init__(self) -> None:
        _several(columns=self.columns, positive=self.positive)


@dataclass(frozen=True, kw_only=True)
class Auditing:
    """What is tried in an audit.

    edits: names of edits, or of their families; all without one. paraphrases: columns of the data with paraphrases of
    the output, each an edit of its own. samples: how many to draw at random; all without a number. threshold: from
    which score on the verdict is yes, on the scorer's scale; without, that of a calibration, else the scorer's own.
    Raises ConfigError for one text in the place of several.
    """

    edits: tuple[str, ...] = ()
    paraphrases: tuple[str, ...] = ()
    samples: int | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        _several(edits=self.edits, paraphrases=self.paraphrases)


def _several(**settings: object) -> None:
    """Raise ConfigError for a text where several are wanted: it would be read letter by letter."""
    for name, value in settings.items():
        if isinstance(value, str):
            raise ConfigError(f"{name} must be a tuple of texts, such as ({value!r},), not the text {value!r}")


ASKING = Asking()
LABELLING = Labelling()
AUDITING = Auditing()
