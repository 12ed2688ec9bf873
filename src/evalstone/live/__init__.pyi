# The public names of evalstone.live.

from evalstone.ledger.scores import ListedScore as ListedScore
from evalstone.ledger.scores import list_scores as list_scores
from evalstone.live.accounting import Coverage as Coverage
from evalstone.live.accounting import ScorerCoverage as ScorerCoverage
from evalstone.live.accounting import coverage as coverage
from evalstone.live.asgi import Request as Request
from evalstone.live.asgi import Response as Response
from evalstone.live.client import Live as Live
from evalstone.live.client import Submission as Submission
from evalstone.live.guard import Guard as Guard
from evalstone.live.guard import GuardVerdict as GuardVerdict
from evalstone.live.score_drift import LiveDrift as LiveDrift
from evalstone.live.score_drift import drift as drift

__all__: list[str]
