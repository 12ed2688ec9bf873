"""The edits of an audit, by name. To add one: a line in its family's file, its test."""

from collections.abc import Iterable, Mapping

from evalstone.errors import ConfigError, unknown
from evalstone.judge_quality.perturbations.base import Edit, Family, as_it_is
from evalstone.judge_quality.perturbations.injection import CANARIES
from evalstone.judge_quality.perturbations.paraphrase import PARAPHRASE, given
from evalstone.judge_quality.perturbations.position import POSITION
from evalstone.judge_quality.perturbations.presentation import DRESSING

__all__ = ["AGAIN", "EDITS", "Edit", "Family", "chosen_edits", "given"]


AGAIN = Edit("asked_again", "repetition", "chance: nothing was changed, only asked again", as_it_is)
EDITS: Mapping[str, Edit] = {edit.name: edit for edit in (AGAIN, *POSITION, *DRESSING, *CANARIES, *PARAPHRASE)}


def chosen_edits(names: Iterable[str]) -> tuple[Edit, ...]:
    """The edits of these names, or of families of these names; all without one. `asked_again` is always the first.

    Raises ConfigError for an unknown name.
    """
    wanted = [name.replace("-", "_") for name in names]
    families = {edit.family.replace("-", "_") for edit in EDITS.values()}
    for name in wanted:
        if name not in EDITS and name not in families:
            raise ConfigError(unknown("edit", name, {*EDITS, *families}))
    found = [e for e in EDITS.values() if not wanted or e.name in wanted or e.family.replace("-", "_") in wanted]
    return (AGAIN, *(edit for edit in found if edit is not AGAIN))
