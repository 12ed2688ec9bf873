"""How far a judge can be trusted: calibrated against human labels, audited for what it is swayed by."""

from evalstone.trust.auditing import Audit, aaudit, audit
from evalstone.trust.calibrating import acalibrate, calibrate
from evalstone.trust.edits import EDITS, Edit
from evalstone.trust.effects import Effect
from evalstone.trust.settings import Asking, Auditing, Labelling

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
