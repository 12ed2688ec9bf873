"""From a recorded case to our scorer, our sample, and the recorded judgements as replies to our questions."""

from collections.abc import Mapping

from tests.parity.adapters.common import Adapter
from tests.parity.adapters.rag import RAG

ADAPTERS: Mapping[str, Adapter] = {**RAG}

__all__ = ["ADAPTERS"]
