"""The page of a sample: the judge calls behind its scores, messages and tool calls, trials, and their data."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone import Message, ModelJudge, Run, Sample, Score, Scorer, ToolCall, evaluate
from evalstone._core.redaction import register
from evalstone.judges import DecisionJudge, Panel
from evalstone.questions import ListClaims
from evalstone.questions.base import Ask
from evalstone.types import Usage
from evalstone.view.addresses import compared_address, sample_address
from evalstone.view.app import application
from evalstone.view.shelf import Shelf
from tests.aligned import WORDING, aligned_checker
from tests.judges.test_decision import decide
from tests.serving import Server, completion, filled, serving
from tests.view.conftest import Client, Reply, client_of

SECRET = "sk-live-4f9A77bQz0"
HOSTILE = "<script>alert(1)</script>\u202e"
ANSWER = f"It opens at 9. {HOSTILE}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    def behave(request: dict[str, Any], number: int) -> Any:
        reply = filled(request["response_format"]["json_schema"]["schema"], "<<text>>\nIt opens at 9.\n<</text>>")
        return completion("no JSON" if number == 2 else json.dumps(reply) + " " * 10)

    with serving(behave) as running:
        yield running


@pytest.fixture(scope="module")
def run(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Client]:
    ledger = str(tmp_path_factory.mktemp("calls") / "ledger.db")
    judge = ModelJudge("vllm/m", base_url=server.url, prices=(1000.0, 1000.0))
    samples = [
        Sample(
            id=f"s{number}",
            input="When?",
            output=f"{ANSWER}{number}",
            context=["It opens at 9.", SECRET],
            messages=[
                Message(role="user", content="When?"),
                Message(
                    role="assistant",
                    tool_calls=[
                        ToolCall(name="look", arguments={"at": HOSTILE}, result={"hours": "9 to 6"}),
                        ToolCall(name="ask", arguments={"who": "Ada"}, state="error", error="not there"),
                    ],
                    usage=Usage(120, 30),
                ),
                Message(role="assistant", content=ANSWER),
            ],
            metadata={"target": {"seconds": 1.25, "usage": {"input": 900, "output": 80}, "cost": 0.0125}},
        )
        for number in (1, 2)
    ]
    made = evaluate(samples, ["faithfulness", "hallucination"], judge=Panel(judge, "lexical"), ledger=ledger)
    register(SECRET)
    return made, Client(application(Shelf(ledger)))


def page_of(run: tuple[Run, Client], key: str = "s1", suffix: str = "") -> Reply:
    made, client = run
    return page_at(client, sample_address(made.id, key) + suffix)


def page_at(client: Client, address: str) -> Reply:
    deadline = time.monotonic() + 20
    while (reply := client.get(address)).status == 202 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert reply.status == 200
    return reply


def test_each_judge_call_has_its_prompt_reply_answer_and_what_it_took(run: tuple[Run, Client], server: Server) -> None:
    page = page_of(run)
    plain = html.unescape(page.text)
    for message in server.requests[0]["messages"]:
        assert message["content"].replace("\u202e", "\\u202e").replace(SECRET, "***") in plain
    assert "<summary" in page.text
    assert page.words.count("Judge calls 2") == 2
    assert "vllm/m asked 100 + 20 tokens, 40 cached" in page.words
    assert "$0.12" in page.words
    assert "vllm/m shared" in page.words
    assert "lexical" in page.words
    assert page.words.count("Prompt: system") == 4
    assert page.words.count("Input: claims") == 2
    assert page.words.count("Read from the reply") >= 4


def test_a_corrected_reply_is_shown_with_what_was_wrong(run: tuple[Run, Client]) -> None:
    pages = [page_of(run, key).words for key in ("s1", "s2")]
    (page,) = [page for page in pages if "Reply 1, corrected no JSON" in page]
    assert "1 correction" in page
    assert "the reply holds no complete JSON object" in page


def test_judged_text_in_prompts_is_escaped_and_secrets_are_redacted(run: tuple[Run, Client]) -> None:
    for reply in (page_of(run), page_of(run, suffix=".json")):
        assert SECRET not in reply.text
    page = page_of(run)
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text


def test_the_data_of_a_sample_have_what_was_asked(run: tuple[Run, Client], server: Server) -> None:
    data = page_of(run, suffix=".json").json
    calls = [leaf for record in data["records"] for call in record["calls"] for leaf in call["members"]]
    asked = data["asked"][data["records"][0]["signature"]]
    of_model = [call for call in calls if call["judge"].startswith("vllm/")]
    assert of_model
    for call in of_model:
        (messages, schema) = asked[call["fingerprint"]][call["judge"]].values()
        assert [message["role"] for message in messages] == ["system", "user"]
        assert schema["type"] == "object"
    (of_lexical, *_) = [call for call in calls if call["judge"].startswith("lexical")]
    assert "claims" in asked[of_lexical["fingerprint"]][of_lexical["judge"]]["inputs"]


def test_prompts_of_aligned_judges_have_their_wording_and_examples(server: Server, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    samples = [Sample(id=f"s{n}", input="When?", output=f"It opens at {n}.", context=["At 9."]) for n in (9, 10)]
    judge = aligned_checker(ModelJudge("vllm/m", base_url=server.url), samples[0])
    made = evaluate(samples, ["relevancy_check"], judge=judge, ledger=ledger)
    other = evaluate(samples, ["relevancy_check"], judge=judge, ledger=ledger)
    client = Client(application(Shelf(ledger)))
    for key, labels in (("s9", 1), ("s10", 2)):
        words = page_of((made, client), key).words
        assert WORDING in words
        assert words.count("The right label:") == labels, "a sample is no example of itself"
        assert page_at(client, compared_address(key, [made.id, other.id])).words.count(WORDING) == 2


def test_messages_are_a_time_line_with_tokens_and_tool_calls(run: tuple[Run, Client]) -> None:
    page = page_of(run)
    assert "Answer 1.25 s 900 + 80 tokens $0.0125" in page.words
    assert "assistant 120 + 30 tokens" in page.words
    assert "ask(who=Ada) error" in page.words
    assert '<details class="block tool">' in page.text  # a call that worked is folded, one that failed isn't
    assert '<div class="block tool">' in page.text


def test_a_reply_of_megabytes_is_cut_and_whole_in_the_data(tmp_path: Path) -> None:
    with serving(lambda request, _: completion(json.dumps({"claims": ["It opens at 9."]}) + " " * 1_500_000)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        sample = Sample(id="s", output="It opens at 9.", context=["It opens at 9."])
        made = evaluate([sample], ["faithfulness"], judge=judge, ledger=str(tmp_path / "ledger.db"))
    both = made, Client(application(Shelf(str(tmp_path / "ledger.db"))))
    page = page_of(both, "s")
    assert "The first 100,000 of 1,500,030 characters." in page.words
    assert len(page.body) < 1_000_000
    (first, *_) = page_of(both, "s", ".json").json["records"][0]["calls"]
    assert len(first["reply"]) == 1_500_030


def test_trials_are_folded_with_the_spread_of_their_scores(tmp_path: Path) -> None:
    answers = iter(["0.5", "1", "1", "no"])

    def answer(input: str) -> str:
        return next(answers)

    url = str(tmp_path / "ledger.db")
    check = {"name": "numeric_match"}
    made = evaluate([Sample(id="s", input="1?", reference="1")], [check], target=answer, trials=4, ledger=url)
    both = made, client_of(url)
    values = [record.value for record in made.records]
    page = page_of(both, "s #2")
    assert '<details class="trials">' in page.text
    scored = [value for value in values if value is not None]
    mean = sum(scored) / len(scored)
    said = f"mean {mean:.2f}, lowest {min(scored):.2f}, highest {max(scored):.2f}"
    assert f"Trial 2 of 4 scores from 0 (worst) to 1 (best): {said}" in page.words
    assert page.text.count("<circle") == len(scored)
    assert len(page.links("/samples/s%20%23")) >= 4
    assert page.links("/samples/s%20%232$")[0] == sample_address(made.id, "s #2")


def test_an_answer_from_the_ledger_says_that_its_corrections_are_not_known(server: Server, tmp_path: Path) -> None:
    ledger, judge = str(tmp_path / "ledger.db"), ModelJudge("vllm/c", base_url=server.url)
    sample = Sample(id="s", output="It opens at 9.", context=["It opens at 9."])
    runs = [evaluate([sample], ["faithfulness"], judge=judge, ledger=ledger) for _ in range(2)]
    asked, cached = (client_of(ledger).get(sample_address(run.id, "s")).words for run in runs)
    said = "not known: the answer is from the ledger, which keeps only the reply that was read"
    assert (asked.count(said), cached.count(said)) == (0, 2)
    assert len(runs[1].records[0].calls) == 2


def test_an_answer_that_is_probabilities_has_no_corrections(tmp_path: Path) -> None:
    ledger, sample = str(tmp_path / "ledger.db"), Sample(id="s", output="It opens at 9.", context=["It opens at 9."])
    with serving(decide) as server:
        judge = DecisionJudge("systemone/m", base_url=server.url)
        runs = [evaluate([sample], ["fact_check"], judge=judge, ledger=ledger) for _ in range(2)]
    page = client_of(ledger).get(sample_address(runs[1].id, "s")).words
    assert "cached" in page
    assert "malformed replies" not in page


def test_prompts_of_own_scorers_are_shown_if_the_pages_have_them(server: Server, tmp_path: Path) -> None:
    class Counted(Scorer):
        """The number of claims."""

        name = "counted"
        questions = (ListClaims,)

        async def score(self, ask: Ask, *, output: str) -> Score:
            return Score(min(1.0, len(await ask(ListClaims(text=output))) / 2))

    ledger, judge = str(tmp_path / "ledger.db"), ModelJudge("vllm/own", base_url=server.url)
    runs = [
        evaluate([Sample(id="s", output=text)], [Counted()], judge=judge, ledger=ledger)
        for text in ("It opens at 9.", "It opens at 9. Yes.")
    ]
    addresses = (sample_address(runs[0].id, "s"), compared_address("s", [run.id for run in runs]))
    for pages, prompts in ((application(Shelf(ledger)), 0), (application(Shelf(ledger), own=[Counted()]), 1)):
        for address, number in zip(addresses, (1, 2), strict=True):
            page = Client(pages).get(address).words
            assert page.count("Prompt: user") == prompts * number
            assert page.count("its scorer has code that isn") == (1 - prompts) * number
