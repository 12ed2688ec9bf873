"""How far a judge can be trusted: calibrated against human labels, audited for what it is swayed by."""

from evalstone.judge_quality.auditing import Audit, aaudit, audit
from evalstone.judge_quality.calibrating import acalibrate, calibrate
from evalstone.judge_quality.effects import Effect
from evalstone.judge_quality.perturbations import EDITS, Edit
from evalstone.judge_quality.settings import Asking, Auditing, Labelling

__all__ = [
    "EDITS",
    "Asking",
    "Audit",
    "Auditing",
    "Edit",
    "Effect",
    "Labelling",
    "aaudit",
    "acalibrate",
    "audit",
    "calibrate",
]
