# The public names of evalstone.judge_quality.

from evalstone._core.sizes import Concurrency as Concurrency
from evalstone.judge_quality.audit import AuditConfig as AuditConfig
from evalstone.judge_quality.calibrate import JudgeOptions as JudgeOptions
from evalstone.judge_quality.calibrate import LabelConfig as LabelConfig

__all__: list[str]
