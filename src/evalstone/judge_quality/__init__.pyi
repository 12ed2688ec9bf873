# The public names of evalstone.judge_quality.

from evalstone._core.sizes import Concurrency as Concurrency
from evalstone.judge_quality.audit import AuditConfig as AuditConfig
from evalstone.judge_quality.audit import aaudit as aaudit
from evalstone.judge_quality.audit import audit as audit
from evalstone.judge_quality.calibrate import JudgeOptions as JudgeOptions
from evalstone.judge_quality.calibrate import LabelConfig as LabelConfig
from evalstone.judge_quality.calibrate import acalibrate as acalibrate
from evalstone.judge_quality.calibrate import calibrate as calibrate

__all__: list[str]
