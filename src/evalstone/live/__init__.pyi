# The public names of evalstone.live.

from evalstone.ledger.scores import ListedScore as ListedScore
from evalstone.ledger.scores import ScoreList as ScoreList
from evalstone.ledger.scores import Source as Source
from evalstone.ledger.scores import list_scores as list_scores
from evalstone.live.accounting import Coverage as Coverage
from evalstone.live.accounting import ScorerCoverage as ScorerCoverage
from evalstone.live.accounting import coverage as coverage
from evalstone.live.asgi import Application as Application
from evalstone.live.asgi import Middleware as Middleware
from evalstone.live.asgi import Read as Read
from evalstone.live.asgi import Request as Request
from evalstone.live.asgi import Response as Response
from evalstone.live.client import Live as Live
from evalstone.live.client import LiveSource as LiveSource
from evalstone.live.client import Submission as Submission
from evalstone.live.frames import Content as Content
from evalstone.live.frames import Priority as Priority
from evalstone.live.guard import Guard as Guard
from evalstone.live.guard import GuardMode as GuardMode
from evalstone.live.guard import GuardVerdict as GuardVerdict
from evalstone.live.guard import OnUndefined as OnUndefined
from evalstone.live.score_drift import LiveDrift as LiveDrift
from evalstone.live.score_drift import ScorerWatch as ScorerWatch
from evalstone.live.score_drift import WatchedMean as WatchedMean
from evalstone.live.score_drift import drift as drift
from evalstone.live.tracing import Trace as Trace
from evalstone.live.watching import WatchedFields as WatchedFields

__all__: list[str]
