"""The entries of a sample's metadata that evalstone itself reads."""

from __future__ import annotations

from collections.abc import Mapping

RESERVED_METADATA: Mapping[str, str] = {
    "additionalContext": "an object whose `rubric` is read like `rubric`",
    "checks": "`sample_checks`: the checks of the sample, a list of tables",
    "criterion": "`multi_turn_judge`: the criterion, a text",
    "error": "traces: the error of a request without an answer",
    "facts": "simulated users: what the user knows, an object",
    "goal": "`goal_reached`, `plan_quality` and simulated users: what the user wants, a text or a list of texts",
    "label": "`calibrate`: a label by a person; reports: `grounded` or `ungrounded`",
    "model": "traces: the model that answered; `traces --where`",
    "noisy_query": "`noise_sensitivity`: the question with noise, a text",
    "persona": "simulated users: who the user is, a text",
    "relevant": "retrieval metrics: the ids of the relevant documents, or a grade for each",
    "requestContext": "an object whose `rubric` is read like `rubric`",
    "retrieved": "retrieval metrics: the ids of the retrieved documents, in order",
    "rubric": "`rubric`: the criteria, a text or a list",
    "rubrics": "`rubric`: the same, before `rubric`; `evalstone rubrics` writes it",
    "started": "traces: when the request started",
    "target": "written for an answer of a target: seconds, tokens, cost; `latency`, `tokens` and `cost` read it",
    "topics": "`topic_adherence`: the topics that the agent covers, a text or a list of texts",
    "trace": "written for samples of traces and live scores: where the sample comes from",
}
"""By entry, what reads it and what it is. `pairwise`, slices, prompts and paraphrases also read the entries that a user
names. docs/data.md shows this table."""
WRITTEN_METADATA = ("target", "trace")
"""Those that evalstone writes, which are no columns of the data."""
