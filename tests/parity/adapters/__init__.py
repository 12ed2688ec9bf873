"""From a recorded case to our scorer, our sample, and the recorded judgements as replies to our questions."""

from collections.abc import Mapping

from tests.parity.adapters.agents import AGENTS
from tests.parity.adapters.checks import CHECKS
from tests.parity.adapters.code import CODE
from tests.parity.adapters.common import Adapter
from tests.parity.adapters.quality import QUALITY
from tests.parity.adapters.rag import RAG
from tests.parity.adapters.summaries import SUMMARIES

ADAPTERS: Mapping[str, Adapter] = {**RAG, **CODE, **CHECKS, **AGENTS, **QUALITY, **SUMMARIES}

__all__ = ["ADAPTERS"]
