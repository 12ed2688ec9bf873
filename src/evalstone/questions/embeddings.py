"""How similar two texts are by their embeddings: the one question that an embedding model answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.questions.base import Question
from evalstone.questions.markers import Between, Unordered


@dataclass(frozen=True)
class Cosine(NoTruthValue):
    """The cosine of the angle between two embeddings, from -1 to 1."""

    cosine: Annotated[float, Between(-1, 1), Unordered()]


SHOW_BOTH = Prompt("", "{{first}}\n\n{{second}}")


class CompareEmbeddings(Question[Cosine]):
    """How similar are the embeddings of two texts? Its prompt only shows the texts; nothing else is sent."""

    kind = "compare_embeddings"
    first: str
    second: str
    prompt: Prompt = SHOW_BOTH
