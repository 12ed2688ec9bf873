"""Targets: what produces the answers that are scored."""

from evalstone.targets.base import Answer, FunctionTarget, Target, absent
from evalstone.targets.parse import parse_target

__all__ = ["Answer", "FunctionTarget", "Target", "absent", "parse_target"]
