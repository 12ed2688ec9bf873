from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from typing import TYPE_CHECKING, Annotated, Any

from evalstone._core.declarations import TEXT, Range, Rule, check_argument
from evalstone._core.guards import is_mapping
from evalstone._core.prompts import Prompt
from evalstone.errors import ConfigError
from evalstone.questions.base import Ask, QuestionSpec
from evalstone.questions.custom import Choose, choice_form, distinct_words, filled
from evalstone.scorers.custom import CustomScorer, inputs, template_prompt, with_fields
from evalstone.types import Score, Skipped

if TYPE_CHECKING:
    from evalstone.judges.base import Judge

YES_NO: Mapping[str, float | None] = {"yes": 1.0, "no": 0.0}
_CHOICES = Rule(f"words with their values, such as {YES_NO}", is_mapping)
ABSTAINING = "the material does not let you tell"


class LLMClassifier(CustomScorer, kw_only=False):
    """The value of the word that a judge chooses.

        llm classifier = the value of the word that the judge chose          range [0, scale]
        weighted:  Σ p(word) · value / Σ p(word) over the words with a value; for yes and no, the probability of yes

    Higher is better, unless lower_is_better is set. Undefined when the judge chooses a word that stands for abstaining.
    If the judge returns no probabilities, the value of its word replaces the weighted one, and the reason says so. One
    judge call.

    Attributes:
        question: The question to the judge. Its placeholders, such as {{output}}, are filled with the sample's fields:
            input, output, context, reference, messages, instructions, and metadata.NAME.
        fields: The fields to show before the question if it has no placeholders for them. By default, input and output
            if the question has no placeholders at all.
        choices: Each word and its value in [0, 1]. None stands for abstaining: the sample is Skipped.
        abstain: A word for abstaining, for files that can't write None.
        weighted: Whether to weight the values by the judge's probabilities of the words.
        meanings: What each word means, for example with a borderline case.
        instructions: Further instructions to the judge.

    Raises:
        ConfigError: The question is empty, or a choice or meaning is invalid.
        PromptError: A placeholder is unknown.
    """

    excluded_from_signature = (*CustomScorer.excluded_from_signature, "question", "fields", "meanings", "instructions")
    questions = (Choose,)

    question: Annotated[str, TEXT]
    _: KW_ONLY
    choices: Annotated[Mapping[str, float | None], _CHOICES] = field(default_factory=lambda: dict(YES_NO), hash=False)
    meanings: Mapping[str, str] = field(default_factory=lambda: dict[str, str](), hash=False)
    abstain: str | None = None
    weighted: bool = False
    fields: Sequence[str] | None = None
    instructions: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.abstain is not None:
            object.__setattr__(self, "abstain", self.abstain.strip())
        object.__setattr__(self, "choices", self._checked_choices())
        meanings = {word.strip(): meaning for word, meaning in self.meanings.items()}
        if unexpected := sorted(set(meanings) - set(self.choices)):
            raise ConfigError(f"{self.name}: meanings has {unexpected[0]!r}, which is not among the choices")
        object.__setattr__(self, "meanings", meanings)
        self.prompt.check(self.prompt.placeholders)
        object.__setattr__(self, "required_fields", self.prompt.placeholders)

    def _checked_choices(self) -> dict[str, float | None]:
        pairs = list(self.choices.items())
        if self.abstain is not None and self.abstain not in (str(word).strip() for word in self.choices):
            pairs.append((self.abstain, None))
        try:
            words = distinct_words([word for word, _ in pairs])
        except ConfigError as error:
            raise ConfigError(f"{self.name}: ", error) from None
        choices = {word: value for word, (_, value) in zip(words, pairs, strict=True)}
        for word, value in choices.items():
            check_argument(f"the value of {word!r}", value, Annotated[float | None, Range(0, 1)], self.name)
        if not any(value is not None for value in choices.values()):
            raise ConfigError(f"{self.name}: no choice has a value")
        return choices

    @functools.cached_property
    def prompt(self) -> Prompt:
        """The prompt of its question."""
        meanings = {
            word: self.meanings.get(word, "" if v is not None else ABSTAINING) for word, v in self.choices.items()
        }
        instructions = "\n\n".join(part for part in (self.instructions.strip(), choice_form(meanings)) if part)
        return template_prompt(with_fields(self.question, self.fields), instructions)

    def description(self) -> str:
        return self.question

    def questions_to(self, judge: Judge | None) -> Sequence[QuestionSpec]:
        blank = self._question(dict.fromkeys(self.prompt.placeholders, ""))
        return [blank if kind is Choose else kind for kind in self.asked_kinds]

    def _question(self, fields: Mapping[str, Any]) -> Choose:
        return Choose(
            values=filled(self.prompt, fields),
            prompt=self.prompt,
            choices=tuple(self.choices),
            by_probability=self.weighted,
        )

    async def score(self, ask: Ask, **fields: Any) -> Score | Skipped:
        chosen = await ask(self._question(inputs(fields)))
        value = self.choices[chosen.choice]
        if value is None:
            return Skipped(f"the judge abstained with {chosen.choice!r}" + (f": {chosen.reason}" * bool(chosen.reason)))
        reason = f"{chosen.choice}: {chosen.reason}".rstrip(": ")
        if self.weighted and chosen.probabilities:
            value = self._expected(chosen.probabilities)
        elif self.weighted:
            reason += " (the judge gave no probabilities)"
        return Score(value * self.scale, reason, evidence=chosen)

    def _expected(self, probabilities: Mapping[str, float]) -> float:
        """The mean value of the words that have one, weighted by their probabilities."""
        known = [(value, probabilities.get(word, 0.0)) for word, value in self.choices.items() if value is not None]
        return math.fsum(value * share for value, share in known) / math.fsum(share for _, share in known)
