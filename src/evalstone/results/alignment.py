"""Alignments: what was chosen from labels for a judge and a scorer, and what that gains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

from evalstone._core.file_format import ALIGNMENT_ESTIMATE_FORMAT, ALIGNMENT_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.json import to_jsonable
from evalstone._core.validation import read_data
from evalstone.datasets.writing import readable_json, write_text
from evalstone.errors import ConfigError
from evalstone.report.shown import Shown
from evalstone.stats.intervals import Interval
from evalstone.types import AlignedQuestion, Note, note

if TYPE_CHECKING:
    from evalstone.report.view import View

POWER = 0.8
"""The probability that the number of labels that is said to be needed shows the gain."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """How well verdicts agree with the labels, on labels that had no part in a choice."""

    accuracy: Interval
    """The share of right verdicts, in [0, 1]. A sample without a verdict counts as wrong."""
    balanced_accuracy: Interval | None = None
    """The mean of sensitivity and specificity, in [0, 1]; 0.5 is chance. None if all labels are the same."""
    brier: Interval | None = None
    """The Brier score of the probabilities, in [0, 1]; lower is better. None if the judge gives none."""
    auroc: Interval | None = None
    """The area under the ROC curve of the probabilities, in [0, 1]; None if the judge gives none. Mappings don't change
    it."""

    @property
    def chance_notes(self) -> tuple[Note, ...]:
        """That it isn't shown to tell yes from no, if it isn't: the 95% interval of its AUROC, or of its balanced
        accuracy if it gives no probabilities, includes chance."""
        of, measured = (
            ("AUROC", self.auroc) if self.auroc is not None else ("balanced accuracy", self.balanced_accuracy)
        )
        if measured is None or measured.low is None or measured.high is None or measured.low > 0.5:
            return ()
        limits = (measured.estimate, measured.low, measured.high)
        return (note("judge_tells_nothing_apart", "warning", of=of, measured=limits),)


@dataclass(frozen=True, kw_only=True)
class TriedWay:
    """A way in which the judge was asked."""

    wording: str
    """"default", "strict", "lenient", or the instructions."""
    examples: int
    """The number of worked examples."""
    accuracy: float
    """The accuracy on the labels by which ways were compared, in [0, 1]. That of the best is optimistic."""
    unscored: int
    """The number of these samples without a score."""
    picked: int
    """How often it was chosen without one of the ten parts of the labels."""


@dataclass(frozen=True, kw_only=True)
class Alignment(Shown):
    """What was chosen from labels for one judge and one scorer, and what that gains on other labels."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"allow_inf_nan": False}

    judge: str
    """The judge's identity."""
    scorer: str
    """The scorer's name."""
    signature: str
    """The scorer's signature."""
    objective: str
    """What was to be high: "accuracy", or "brier" for a low Brier score."""
    dataset_name: str
    """The name of the dataset."""
    dataset_version: str
    """The version of the dataset: a hash of its samples."""
    chosen: AlignedQuestion | None = None
    """What is changed; None if the judge as it is was chosen, or the alignment ended early."""
    wording: str = "default"
    """The name of the chosen wording: "default", "strict" or "lenient"; or the instructions."""
    gain: Interval | None = None
    """The gain on held-out labels: accuracy of the aligned judge minus that of the judge as it is, or Brier score of
    the judge as it is minus that of the aligned one. Higher is better. None if the alignment ended early."""
    wins: int = 0
    """Held-out labels on which the aligned judge is better."""
    losses: int = 0
    """Held-out labels on which it is worse."""
    edge: float = 0.0
    """The standard errors from the gain to each of its limits."""
    default: Measured | None = None
    """The judge as it is."""
    aligned: Measured | None = None
    """The aligned judge, each label judged by a choice in which it had no part."""
    tried: tuple[TriedWay, ...] = ()
    """The ways in which the judge was asked, the default first."""
    tried_thresholds: bool = False
    """Whether thresholds of the judge's probabilities were tried in each way, where a sample has several verdicts. With
    one verdict a sample, mappings are tried too, and measures have a `brier`."""
    labels: str = ""
    """The name of the labels' file, or "labels in memory"."""
    columns: tuple[str, ...] = ()
    """The columns of labels."""
    n_pool: int = 0
    """The labeled samples that examples were chosen from."""
    n_compared: int = 0
    """The other labeled samples, by which the choice was made."""
    labeled: tuple[str, ...] = ()
    """A hash of each labeled sample."""
    labels_hash: str = ""
    """A hash of the labeled samples with their labels."""
    n_failed: int = 0
    """Labeled samples that failed when the judge was asked as it is."""
    notes: tuple[Note, ...] = ()
    """What to know before relying on it."""
    stop_reason: str = ""
    """Why it ended early; "" when it completed."""
    cost: float | None = None
    """US dollars that the judge calls cost; None if a price is unknown."""
    created: str = ""
    """When it was made, in UTC (ISO 8601)."""

    @property
    def passed(self) -> bool | None:
        """Whether the aligned judge is shown to be better: something is changed, the whole 95% interval of the gain is
        above 0, and its verdicts tell yes from no (`informative`). None if the alignment ended early."""
        if self.gain is None or self.gain.low is None:
            return None
        return self.chosen is not None and self.gain.low > 0 and self.informative

    @property
    def informative(self) -> bool:
        """Whether the aligned judge is shown to tell yes from no: the whole 95% interval of its balanced accuracy, or
        of its AUROC if the Brier score was to improve, is above 0.5. A judge that always gives the more frequent label
        may be right more often than before, and tells nothing."""
        measured = self._discrimination
        return measured is not None and measured.low is not None and measured.low > 0.5

    @property
    def _discrimination(self) -> Interval | None:
        if self.aligned is None:
            return None
        return self.aligned.balanced_accuracy if self.objective == "accuracy" else self.aligned.auroc

    @property
    def labels_needed(self) -> int | None:
        """The number of labels, with those at hand, that would probably (80%) show the gain, if it is as estimated.
        None if it is shown already, or not above 0."""
        gain = self.gain
        if gain is None or gain.low is None or gain.estimate <= 0 or gain.low > 0:
            return None
        error = (gain.estimate - gain.low) / self.edge
        compared = gain.n * ((self.edge + NormalDist().inv_cdf(POWER)) * error / gain.estimate) ** 2
        return math.ceil(compared * (self.n_pool + self.n_compared) / self.n_compared)

    @property
    def verdict(self) -> Note:
        """Whether the aligned judge is shown to be better, and by how much."""
        gain = self.gain
        if gain is None:
            return note("alignment_ended_early", "warning", reason=self.stop_reason)
        if self.chosen is not None and (gain.low or 0.0) > 0 and not self.informative:
            measured = self._discrimination
            return note(
                "alignment_uninformative",
                "warning",
                objective=self.objective,
                gain=(gain.estimate, gain.low or 0.0, gain.high or 0.0),
                measured=() if measured is None else (measured.estimate, measured.low or 0.0, measured.high or 0.0),
            )
        kind = (
            "alignment_better" if self.passed else "alignment_default" if self.chosen is None else "alignment_not_shown"
        )
        return note(
            kind,
            "fact" if self.passed else "caution",
            objective=self.objective,
            gain=(gain.estimate, gain.low or 0.0, gain.high or 0.0),
            labels=gain.n,
            needed=self.labels_needed,
        )

    def save(self, path: str | Path) -> None:
        """Write the file for `Aligned` and for `MODEL(align=FILE)`.

        Raises:
            ConfigError: The aligned judge isn't shown to be better, or the file can't be written.
        """
        if not self.passed:
            from evalstone.report.notes import clause_of  # noqa: PLC0415 - only this error shows a note

            raise ConfigError(f"the alignment is not saved: {clause_of(self.verdict)}")
        write_text(path, [readable_json(self.to_dict())])

    def __repr__(self) -> str:
        return f"<Alignment of {self.judge} for {self.scorer}: {self.n_pool + self.n_compared} labels>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The report that `evalstone align` shows."""
        from evalstone.results.views.alignment import alignment_view  # noqa: PLC0415 - only showing it needs it

        return alignment_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The alignment as plain data; `from_dict` reads it back."""
        values: dict[str, Any] = to_jsonable(self)
        return {
            "format": ALIGNMENT_FORMAT,
            **values,
            "notes": [each.to_dict() for each in self.notes],
            "passed": self.passed,
            "labels_needed": self.labels_needed,
            "verdict": self.verdict.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Alignment:
        """Create an alignment from its plain data. Unknown fields are ignored.

        Raises:
            DataError: The data has another format, or a value doesn't fit its field.
        """
        ALIGNMENT_FORMAT.check(data)
        return read_data(cls, data)


@dataclass(frozen=True, kw_only=True)
class AlignmentEstimate(Shown):
    """The judge calls that an alignment makes at most."""

    judge: str
    """The judge's identity."""
    scorer: str
    """The scorer's name."""
    samples: int
    """The labeled samples, of which the judge is asked as it is."""
    compared: int
    """Those of which it is asked in every way."""
    ways: int
    """The ways, the judge as it is included."""
    calls: int
    """The judge calls at most. Answers in the ledger are left out where they can be known: of the judge as it is."""
    input_tokens: int
    """The estimated tokens of the prompts; examples are taken to be as long as questions."""
    output_tokens: int
    """The estimated tokens of the replies."""
    cost: float | None
    """US dollars; None if a price is unknown."""

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """One sentence with the calls, tokens and cost."""
        from evalstone.results.views.alignment import alignment_estimate_view  # noqa: PLC0415 - only to show it

        return alignment_estimate_view(self)

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain data."""
        return {"format": ALIGNMENT_ESTIMATE_FORMAT, **to_jsonable(self)}
