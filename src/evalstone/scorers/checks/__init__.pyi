# The public names of evalstone.checks: classes, and the same under their names as scorers.

from evalstone.scorers.checks.base import Check as Check
from evalstone.scorers.checks.base import TextCheck as TextCheck
from evalstone.scorers.checks.calls import CallCheck as CallCheck
from evalstone.scorers.checks.calls import Cost as Cost
from evalstone.scorers.checks.calls import Latency as Latency
from evalstone.scorers.checks.calls import Tokens as Tokens
from evalstone.scorers.checks.calls import cost as cost
from evalstone.scorers.checks.calls import latency as latency
from evalstone.scorers.checks.calls import tokens as tokens
from evalstone.scorers.checks.json import JsonSchema as JsonSchema
from evalstone.scorers.checks.json import JsonValid as JsonValid
from evalstone.scorers.checks.json import json_schema as json_schema
from evalstone.scorers.checks.json import json_valid as json_valid
from evalstone.scorers.checks.multiple_choice import Choice as Choice
from evalstone.scorers.checks.multiple_choice import choice as choice
from evalstone.scorers.checks.numeric import NumericMatch as NumericMatch
from evalstone.scorers.checks.numeric import Which as Which
from evalstone.scorers.checks.numeric import numeric_match as numeric_match
from evalstone.scorers.checks.own import SampleChecks as SampleChecks
from evalstone.scorers.checks.own import sample_checks as sample_checks
from evalstone.scorers.checks.texts import Contains as Contains
from evalstone.scorers.checks.texts import ExactMatch as ExactMatch
from evalstone.scorers.checks.texts import NotContains as NotContains
from evalstone.scorers.checks.texts import Regex as Regex
from evalstone.scorers.checks.texts import Similarity as Similarity
from evalstone.scorers.checks.texts import contains as contains
from evalstone.scorers.checks.texts import exact_match as exact_match
from evalstone.scorers.checks.texts import not_contains as not_contains
from evalstone.scorers.checks.texts import regex as regex
from evalstone.scorers.checks.texts import similarity as similarity
from evalstone.scorers.checks.tools import MaxToolCalls as MaxToolCalls
from evalstone.scorers.checks.tools import NoToolCalls as NoToolCalls
from evalstone.scorers.checks.tools import NoToolErrors as NoToolErrors
from evalstone.scorers.checks.tools import ToolCalled as ToolCalled
from evalstone.scorers.checks.tools import ToolCheck as ToolCheck
from evalstone.scorers.checks.tools import ToolNotCalled as ToolNotCalled
from evalstone.scorers.checks.tools import ToolOrder as ToolOrder
from evalstone.scorers.checks.tools import max_tool_calls as max_tool_calls
from evalstone.scorers.checks.tools import no_tool_calls as no_tool_calls
from evalstone.scorers.checks.tools import no_tool_errors as no_tool_errors
from evalstone.scorers.checks.tools import tool_called as tool_called
from evalstone.scorers.checks.tools import tool_not_called as tool_not_called
from evalstone.scorers.checks.tools import tool_order as tool_order

__all__: list[str]
