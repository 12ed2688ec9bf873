# The public names of evalstone, grouped by module: the one table that the package and type checkers read.

from evalstone import agents as agents
from evalstone import compat as compat
from evalstone import datasets as datasets
from evalstone import errors as errors
from evalstone import judges as judges
from evalstone import live as live
from evalstone import models as models
from evalstone import otel as otel
from evalstone import questions as questions
from evalstone import report as report
from evalstone import results as results
from evalstone import scorers as scorers
from evalstone import stats as stats
from evalstone import targets as targets
from evalstone import types as types
from evalstone._core.prompts import Prompt as Prompt
from evalstone.api import adry_run as adry_run
from evalstone.api import aevaluate as aevaluate
from evalstone.api import ascore as ascore
from evalstone.api import dry_run as dry_run
from evalstone.api import evaluate as evaluate
from evalstone.api import score as score
from evalstone.compat.imports.importing import ImportedRuns as ImportedRuns
from evalstone.compat.imports.importing import import_results as import_results
from evalstone.datasets import Dataset as Dataset
from evalstone.datasets import Samples as Samples
from evalstone.datasets import load as load
from evalstone.errors import (
    ConfigError as ConfigError,
)
from evalstone.errors import (
    DataError as DataError,
)
from evalstone.errors import (
    EvalstoneError as EvalstoneError,
)
from evalstone.errors import (
    JudgeDeclined as JudgeDeclined,
)
from evalstone.errors import (
    JudgeError as JudgeError,
)
from evalstone.errors import (
    JudgeUnavailable as JudgeUnavailable,
)
from evalstone.errors import (
    LedgerError as LedgerError,
)
from evalstone.errors import (
    MissingDependency as MissingDependency,
)
from evalstone.errors import (
    ProviderError as ProviderError,
)
from evalstone.errors import (
    ReplyError as ReplyError,
)
from evalstone.errors import (
    RunAborted as RunAborted,
)
from evalstone.judge_quality.audit import aaudit as aaudit
from evalstone.judge_quality.audit import audit as audit
from evalstone.judge_quality.calibrate import acalibrate as acalibrate
from evalstone.judge_quality.calibrate import calibrate as calibrate
from evalstone.judges import (
    Cascade as Cascade,
)
from evalstone.judges import (
    Judge as Judge,
)
from evalstone.judges import (
    LexicalJudge as LexicalJudge,
)
from evalstone.judges import (
    Limits as Limits,
)
from evalstone.judges import (
    LoggingJudge as LoggingJudge,
)
from evalstone.judges import (
    ModelJudge as ModelJudge,
)
from evalstone.judges import (
    Panel as Panel,
)
from evalstone.judges import (
    ReplayJudge as ReplayJudge,
)
from evalstone.judges import (
    ScriptedJudge as ScriptedJudge,
)
from evalstone.judges import (
    SelfConsistency as SelfConsistency,
)
from evalstone.judges import (
    parse_judge as parse_judge,
)
from evalstone.judges.base import JudgeSpec as JudgeSpec
from evalstone.live.client import Live as Live
from evalstone.live.guard import guard as guard
from evalstone.questions.answers import JudgeAnswer as JudgeAnswer
from evalstone.questions.base import Ask as Ask
from evalstone.questions.base import Question as Question
from evalstone.results.compare import Comparison as Comparison
from evalstone.results.compare import compare as compare
from evalstone.results.drift import drift as drift
from evalstone.results.files import write_run as write_run
from evalstone.results.gate import Gate as Gate
from evalstone.results.gate import gate as gate
from evalstone.results.human_labels import load_labels as load_labels
from evalstone.results.power_analysis import power as power
from evalstone.results.run import Run as Run
from evalstone.run.budget import StopSignal as StopSignal
from evalstone.run.data_check import check as check
from evalstone.run.notifier import SampleResult as SampleResult
from evalstone.run.plan import BatchOptions as BatchOptions
from evalstone.run.planning import TargetSpec as TargetSpec
from evalstone.run.planning import UserSpec as UserSpec
from evalstone.run.saved import read_run as read_run
from evalstone.scorers import (
    GEval as GEval,
)
from evalstone.scorers import (
    LLMClassifier as LLMClassifier,
)
from evalstone.scorers import (
    Pipeline as Pipeline,
)
from evalstone.scorers import (
    Rubric as Rubric,
)
from evalstone.scorers import (
    Scorer as Scorer,
)
from evalstone.scorers import (
    checks as checks,
)
from evalstone.scorers import (
    not_scorable as not_scorable,
)
from evalstone.scorers import (
    scorer as scorer,
)
from evalstone.scorers.base import ScorerSpec as ScorerSpec
from evalstone.types import (
    Failed as Failed,
)
from evalstone.types import (
    JudgeCall as JudgeCall,
)
from evalstone.types import (
    Message as Message,
)
from evalstone.types import (
    Outcome as Outcome,
)
from evalstone.types import (
    Record as Record,
)
from evalstone.types import (
    Sample as Sample,
)
from evalstone.types import (
    Score as Score,
)
from evalstone.types import (
    Skipped as Skipped,
)
from evalstone.types import (
    ToolCall as ToolCall,
)
from evalstone.types import (
    Trajectory as Trajectory,
)
from evalstone.types import (
    Usage as Usage,
)

__all__: list[str]
__version__: str
