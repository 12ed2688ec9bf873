# The public names of evalstone.judges.

from evalstone.api import fit_cascade as fit_cascade
from evalstone.judge_quality.align import aalign as aalign
from evalstone.judge_quality.align import align as align
from evalstone.judge_quality.rubrics import WrittenRubrics as WrittenRubrics
from evalstone.judge_quality.rubrics import awrite_rubrics as awrite_rubrics
from evalstone.judge_quality.rubrics import write_rubrics as write_rubrics
from evalstone.judges.aligned import Aligned as Aligned
from evalstone.judges.aligned import AlignmentFile as AlignmentFile
from evalstone.judges.base import Judge as Judge
from evalstone.judges.base import MemberCalls as MemberCalls
from evalstone.judges.cascade import Cascade as Cascade
from evalstone.judges.cascade import CascadeFit as CascadeFit
from evalstone.judges.cascade import CurvePoint as CurvePoint
from evalstone.judges.cascade import LabeledQuestion as LabeledQuestion
from evalstone.judges.composite import Errors as Errors
from evalstone.judges.composite import Panel as Panel
from evalstone.judges.composite import SelfConsistency as SelfConsistency
from evalstone.judges.decision import ClosedJudge as ClosedJudge
from evalstone.judges.decision import DecisionJudge as DecisionJudge
from evalstone.judges.decision import DecisionOrText as DecisionOrText
from evalstone.judges.decision import SentenceJudge as SentenceJudge
from evalstone.judges.embeddings import EmbeddingModel as EmbeddingModel
from evalstone.judges.lexical import LexicalJudge as LexicalJudge
from evalstone.judges.logging import LoggingJudge as LoggingJudge
from evalstone.judges.model import ModelJudge as ModelJudge
from evalstone.judges.onnx import OnnxJudge as OnnxJudge
from evalstone.judges.parse import parse_judge as parse_judge
from evalstone.judges.scripted import ReplayJudge as ReplayJudge
from evalstone.judges.scripted import Script as Script
from evalstone.judges.scripted import ScriptedJudge as ScriptedJudge
from evalstone.judges.voting import Vote as Vote
from evalstone.models.limits import Limits as Limits

__all__: list[str]
