from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone._core.prompts import FENCE_RULE, Prompt
from evalstone.compat.spring import (
    AnswerCorrectnessEvaluator,
    AnswerFaithfulnessEvaluator,
    AnswerRelevancyEvaluator,
    EvaluationRequest,
    FactCheckingEvaluator,
    JudgeEvaluator,
    RelevancyEvaluator,
)
from evalstone.errors import PromptError
from evalstone.judges import ScriptedJudge

REQUEST = EvaluationRequest("THE QUESTION", ["THE DOCUMENT"], "THE ANSWER", "THE REFERENCE")


@pytest.mark.parametrize(
    ("kind", "template", "shown"),
    [
        (RelevancyEvaluator, "Q: {query}\nA: {response}\nC: {context}", "QUESTION ANSWER DOCUMENT"),
        (RelevancyEvaluator, "Q: {{question}}\nA: {{ answer }}\nC: {{context}}", "QUESTION ANSWER DOCUMENT"),
        (FactCheckingEvaluator, "D: {document}\nC: {claim}", "DOCUMENT ANSWER"),
        (AnswerCorrectnessEvaluator, "{query} {response} {context}", "QUESTION ANSWER REFERENCE"),
        (AnswerCorrectnessEvaluator, "{input} {actual_output} {expected_output}", "QUESTION ANSWER REFERENCE"),
        (AnswerFaithfulnessEvaluator, "{context} {student_answer}", "DOCUMENT ANSWER"),
        (AnswerRelevancyEvaluator, "{question} {correct_answer} {student_answer}", "QUESTION REFERENCE ANSWER"),
        (AnswerRelevancyEvaluator, "{{query}} {{response}}", "QUESTION ANSWER"),
    ],
)
def test_springs_holes_are_filled_with_what_they_mean(kind: type[JudgeEvaluator], template: str, shown: str) -> None:
    judge = ScriptedJudge([{"reason": "so", "score": 1, "verdict": "yes"}])
    response = kind(judge, prompt=template).evaluate(REQUEST)
    system, user = judge.asked[0].render()
    assert response.passed is True
    assert [line.removeprefix("THE ") for line in user.splitlines() if line.startswith("THE ")] == shown.split()
    assert "JSON object" in system
    assert FENCE_RULE in system


@pytest.mark.parametrize(
    ("kind", "template", "told"),
    [
        (RelevancyEvaluator, "Q: {query} A: {response}", r"lacks \{context\} \(or \{document\}\)$"),
        (RelevancyEvaluator, "Q: {{query}} C: {{context}}", r"lacks \{\{answer\}\} \(or \{\{response\}\}\)$"),
        (RelevancyEvaluator, "{question} {context}", r"lacks \{answer\}$"),
        (RelevancyEvaluator, "{query} {response} {context} {{mood}} {glum}", r"fills: \{glum\}; known: \{answer\}"),
        (
            RelevancyEvaluator,
            "{{query}} {response} {{context}}",
            r"lacks \{\{answer\}\} .*; \{response\} stands in single braces, where placeholders are .* double ones$",
        ),
        (RelevancyEvaluator, "{query} {response} {{document}}", r"\{\{document\}\} stands in double braces"),
        (RelevancyEvaluator, "{query} {respnse} {context}", r"\{respnse\}; did you mean \{response\}\?"),
        (RelevancyEvaluator, "nothing to fill", r"lacks \{\{answer\}\}, \{\{context\}\}, \{\{question\}\}"),
        (
            RelevancyEvaluator,
            "{query} {response} {context} {mood}",
            r"nothing fills: \{mood\}; known: \{answer\}, \{context\}",
        ),
        (
            FactCheckingEvaluator,
            "{document} {clam}",
            r"lacks \{claim\} .* fills: \{clam\}; did you mean \{claim\}",
        ),
        (AnswerFaithfulnessEvaluator, "{context}", r"lacks \{answer\}$"),
        (AnswerRelevancyEvaluator, "{question}", r"lacks \{answer\}$"),
        (AnswerRelevancyEvaluator, "{correct_answer} {student_answer}", r"lacks \{question\} \(or \{query\}\)$"),
        (RelevancyEvaluator, "  ", "empty"),
    ],
)
def test_a_template_without_its_holes_or_with_others_is_refused_when_built(
    kind: type[JudgeEvaluator], template: str, told: str
) -> None:
    with pytest.raises(PromptError, match=told):
        kind(prompt=template)


def test_braces_of_a_json_example_are_text() -> None:
    example = 'Reply like {"verdict": "yes"} or { }.'
    template = f"{example}\n{{query}}\n{{response}}\n{{context}}"
    judge = ScriptedJudge(["yes"])
    RelevancyEvaluator(judge, prompt=template).evaluate(REQUEST)
    assert example in judge.asked[0].render()[1]


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{query}|{response}|{context}|say {{x}}", "say {x}"),
        ("{{query}}|{{response}}|{{context}}|say {x}", "say {x}"),
        ("{{query}}|{{response}}|{{context}}|not {query} {response} {context}", "not {query} {response} {context}"),
        ('{query}|{response}|{context}|say {"verdict": {response}}', 'say {"verdict": [answer]}'),
    ],
)
def test_the_braces_in_which_all_holes_stand_are_those_of_the_template(template: str, shown: str) -> None:
    judge = ScriptedJudge(["yes"])
    assert RelevancyEvaluator(judge, prompt=template).evaluate(REQUEST).passed
    user = judge.asked[0].render()[1]
    assert shown in user
    assert "THE QUESTION" in user
    assert "THE DOCUMENT" in user


def test_values_are_never_rendered_again() -> None:
    judge = ScriptedJudge(["yes"])
    request = EvaluationRequest("{context} {{context}}", ["a {query}\n\nb"], '{"json": true} {{query}}')
    RelevancyEvaluator(judge, prompt="{query}|{response}|{context}").evaluate(request)
    user = judge.asked[0].render()[1]
    for text in ("\n{context} {{context}}\n", "\na {query}\n\nb\n", '\n{"json": true} {{query}}\n'):
        assert text in user


def test_a_prompt_is_taken_as_it_is_with_spring_holes_renamed() -> None:
    own = Prompt("Decide.", "{{query}} {{response}} {{documents}}", passages=("documents",))
    judge = ScriptedJudge(["no"])
    evaluator = RelevancyEvaluator(judge, prompt=own)
    response = evaluator.evaluate(REQUEST)
    system, user = judge.asked[0].render()
    assert system.startswith("Decide.")
    assert "<<passage 1>>" in user
    assert response.metadata["prompt"] == evaluator.prompts[0].fingerprint


def test_a_prompt_with_single_braces_only_is_refused() -> None:
    with pytest.raises(PromptError, match="lacks"):
        RelevancyEvaluator(prompt=Prompt("", "{query} {response} {context}"))


def test_an_own_minicheck_template_stays_bare() -> None:
    judge = ScriptedJudge(["yes"])
    FactCheckingEvaluator.for_bespoke_minicheck(judge, prompt="{context}\nClaim: {claim}").evaluate(REQUEST)
    assert judge.asked[0].render() == ("", "\nClaim: ".join(("THE DOCUMENT", "THE ANSWER")))


def test_a_template_with_a_reference_needs_one_in_the_request() -> None:
    judge = ScriptedJudge([])
    evaluator = AnswerRelevancyEvaluator(judge, prompt="{question} {correct_answer} {student_answer}")
    response = evaluator.evaluate(EvaluationRequest(user_text="q", response_content="a"))
    assert "reference is blank" in response.feedback


@pytest.mark.parametrize("kind", JudgeEvaluator.__subclasses__(), ids=lambda kind: kind.name)
def test_the_default_prompt_holds_everything_that_is_judged(kind: type[JudgeEvaluator]) -> None:
    reply: Any = {"reason": "so", "score": 1, "verdict": "yes"}
    judge = ScriptedJudge([json.dumps(reply)])
    kind(judge).evaluate(REQUEST)
    assert "THE ANSWER" in judge.asked[0].render()[1]
