"""Quick checks: small scorers in code that hold or do not. `from evalstone import checks; checks.includes("Paris")`."""

from collections.abc import Mapping

from evalstone.scorers.base import Scorer
from evalstone.scorers.checks.base import Check, ToolCheck
from evalstone.scorers.checks.texts import (
    Equals,
    Excludes,
    Includes,
    Matches,
    Similarity,
    equals,
    excludes,
    includes,
    matches,
    similarity,
)
from evalstone.scorers.checks.tools import (
    CalledTool,
    DidNotCall,
    MaxToolCalls,
    NoToolErrors,
    ToolOrder,
    UsedNoTools,
    called_tool,
    did_not_call,
    max_tool_calls,
    no_tool_errors,
    tool_order,
    used_no_tools,
)

CHECKS: Mapping[str, type[Scorer]] = {
    "called_tool": CalledTool,
    "did_not_call": DidNotCall,
    "equals": Equals,
    "excludes": Excludes,
    "includes": Includes,
    "matches": Matches,
    "max_tool_calls": MaxToolCalls,
    "no_tool_errors": NoToolErrors,
    "similarity": Similarity,
    "tool_order": ToolOrder,
    "used_no_tools": UsedNoTools,
}

__all__ = [
    "CHECKS",
    "CalledTool",
    "Check",
    "DidNotCall",
    "Equals",
    "Excludes",
    "Includes",
    "Matches",
    "MaxToolCalls",
    "NoToolErrors",
    "Similarity",
    "ToolCheck",
    "ToolOrder",
    "UsedNoTools",
    "called_tool",
    "did_not_call",
    "equals",
    "excludes",
    "includes",
    "matches",
    "max_tool_calls",
    "no_tool_errors",
    "similarity",
    "tool_order",
    "used_no_tools",
]
