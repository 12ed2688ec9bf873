"""The data types of an evaluation: samples, messages, trajectories, outcomes and records. All are frozen."""

from evalstone.types.alignment import AlignedQuestion as AlignedQuestion
from evalstone.types.alignment import WorkedExample as WorkedExample
from evalstone.types.alignment import material_hash as material_hash
from evalstone.types.alignment import sample_hash as sample_hash
from evalstone.types.asking import NOTHING_STORED as NOTHING_STORED
from evalstone.types.asking import Asking as Asking
from evalstone.types.criteria import OWN_RUBRIC as OWN_RUBRIC
from evalstone.types.criteria import RUBRICS as RUBRICS
from evalstone.types.criteria import Criterion as Criterion
from evalstone.types.criteria import parse_criteria as parse_criteria
from evalstone.types.criteria import rubric_of as rubric_of
from evalstone.types.documents import Passages as Passages
from evalstone.types.messages import FIELD_ROLES as FIELD_ROLES
from evalstone.types.messages import NO_USAGE as NO_USAGE
from evalstone.types.messages import ROLES as ROLES
from evalstone.types.messages import Message as Message
from evalstone.types.messages import Origin as Origin
from evalstone.types.messages import Role as Role
from evalstone.types.messages import ToolCall as ToolCall
from evalstone.types.messages import Usage as Usage
from evalstone.types.metadata import Drawn as Drawn
from evalstone.types.metadata import EndingName as EndingName
from evalstone.types.metadata import Paid as Paid
from evalstone.types.metadata import RunKind as RunKind
from evalstone.types.metadata import RunMetadata as RunMetadata
from evalstone.types.metadata import StoredCell as StoredCell
from evalstone.types.metadata import StoredDataset as StoredDataset
from evalstone.types.metadata import StoredJudge as StoredJudge
from evalstone.types.metadata import StoredScorer as StoredScorer
from evalstone.types.metadata import StoredTarget as StoredTarget
from evalstone.types.metadata import check_time as check_time
from evalstone.types.notes import Note as Note
from evalstone.types.notes import NoteValue as NoteValue
from evalstone.types.notes import Severity as Severity
from evalstone.types.notes import about as about
from evalstone.types.notes import note as note
from evalstone.types.notes import of_scorer as of_scorer
from evalstone.types.records import OUTCOME_NAMES as OUTCOME_NAMES
from evalstone.types.records import TARGET_FAILED as TARGET_FAILED
from evalstone.types.records import TOLERANCE as TOLERANCE
from evalstone.types.records import CallSource as CallSource
from evalstone.types.records import Failed as Failed
from evalstone.types.records import JudgeCall as JudgeCall
from evalstone.types.records import Outcome as Outcome
from evalstone.types.records import Record as Record
from evalstone.types.records import Score as Score
from evalstone.types.records import Skipped as Skipped
from evalstone.types.records import reaches as reaches
from evalstone.types.records import total_cost as total_cost
from evalstone.types.samples import LARGEST as LARGEST
from evalstone.types.samples import LISTS as LISTS
from evalstone.types.samples import SAMPLE_FIELDS as SAMPLE_FIELDS
from evalstone.types.samples import USER_METADATA as USER_METADATA
from evalstone.types.samples import ExchangeFields as ExchangeFields
from evalstone.types.samples import Sample as Sample
from evalstone.types.samples import SampleFields as SampleFields
from evalstone.types.samples import case_key as case_key
from evalstone.types.samples import default_id_note as default_id_note
from evalstone.types.samples import is_own_id as is_own_id
from evalstone.types.samples import metadata_at as metadata_at
from evalstone.types.samples import passages as passages
from evalstone.types.samples import trace_metadata as trace_metadata
from evalstone.types.scorer_names import scorer_name as scorer_name
from evalstone.types.scorer_names import without_fingerprints as without_fingerprints
from evalstone.types.trajectories import STEP_DATA as STEP_DATA
from evalstone.types.trajectories import TOOL_STEPS as TOOL_STEPS
from evalstone.types.trajectories import ExpectationData as ExpectationData
from evalstone.types.trajectories import ExpectedStep as ExpectedStep
from evalstone.types.trajectories import Ordering as Ordering
from evalstone.types.trajectories import StepType as StepType
from evalstone.types.trajectories import Trajectory as Trajectory
from evalstone.types.trajectories import TrajectoryData as TrajectoryData
from evalstone.types.trajectories import TrajectoryExpectation as TrajectoryExpectation
from evalstone.types.trajectories import TrajectoryStep as TrajectoryStep

__all__ = [
    "AlignedQuestion",
    "Asking",
    "CallSource",
    "Drawn",
    "EndingName",
    "ExchangeFields",
    "ExpectationData",
    "ExpectedStep",
    "Failed",
    "JudgeCall",
    "Message",
    "Note",
    "NoteValue",
    "Ordering",
    "Origin",
    "Outcome",
    "Paid",
    "Passages",
    "Record",
    "Role",
    "RunKind",
    "RunMetadata",
    "Sample",
    "SampleFields",
    "Score",
    "Severity",
    "Skipped",
    "StepType",
    "StoredCell",
    "StoredDataset",
    "StoredJudge",
    "StoredScorer",
    "StoredTarget",
    "ToolCall",
    "Trajectory",
    "TrajectoryData",
    "TrajectoryExpectation",
    "TrajectoryStep",
    "Usage",
    "WorkedExample",
]
