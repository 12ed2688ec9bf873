from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from evalstone import ModelJudge, Panel
from evalstone.types.context_limits import DEFAULT_LIMITS, ContextLimits, narrowest
from tests.refusals import refused


def limits_of_window(window: int | None, max_tokens: int | None = None) -> ContextLimits:
    return ModelJudge("vllm/mine", context_window=window, max_tokens=max_tokens).context_limits


def test_a_large_or_unknown_window_leaves_the_usual_room() -> None:
    assert limits_of_window(None) == DEFAULT_LIMITS
    assert limits_of_window(400_000) == replace(DEFAULT_LIMITS, longest=395_904, window=400_000)


def test_a_small_window_leaves_room_for_the_reply() -> None:
    assert limits_of_window(8_192) == ContextLimits(8_192 - 2_048, 25, longest=8_192 - 2_048, window=8_192)
    assert limits_of_window(2_000, 500) == ContextLimits(1_500, 6, longest=1_500, window=2_000)
    assert limits_of_window(1_000, 2_000).longest == 1


def test_a_short_reply_takes_fewer_items() -> None:
    assert limits_of_window(None, max_tokens=400) == ContextLimits(items=5)
    assert limits_of_window(None, max_tokens=10) == ContextLimits(items=1)


def test_a_model_has_the_room_of_its_listed_window_or_of_the_one_it_is_given() -> None:
    listed = ModelJudge("openai/gpt-5.1").context_limits
    assert (listed.tokens, listed.items) == (DEFAULT_LIMITS.tokens, DEFAULT_LIMITS.items)
    assert listed.longest is not None
    assert listed.longest > 100_000
    assert ModelJudge("vllm/mine").context_limits.longest is None
    assert ModelJudge("openai/gpt-5.1", context_window=4_096).context_limits.tokens == 3_072


def test_several_judges_take_what_each_of_them_takes() -> None:
    small, unknown = ContextLimits.of_window(4_096), ContextLimits(tokens=9_000, items=3, whole=True)
    assert narrowest(small, unknown) == ContextLimits(3_072, 3, longest=3_072, window=4_096)
    assert narrowest(unknown) == unknown
    assert Panel(ModelJudge("vllm/a"), ModelJudge("vllm/b", context_window=4_096)).context_limits == small


def test_the_window_decides_what_is_asked_and_is_in_the_identity() -> None:
    assert ModelJudge("vllm/m", context_window=8_192).identity == "vllm/m(context_window=8192)"


def test_the_list_of_models_is_not_loaded_for_a_server_of_ones_own() -> None:
    code = """if True:
        import sys
        from evalstone import ModelJudge
        from evalstone.types import Usage
        for provider in ("llamacpp", "lmstudio", "ollama", "vllm"):
            judge = ModelJudge(f"{provider}/gpt-4o")
            print(judge.price(Usage(100, 10)), judge.context_limits.tokens)
        print("genai_prices" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["None 50000"] * 4 + ["False"]


def test_a_window_that_is_no_number_is_refused() -> None:
    with refused("context_window"):
        ModelJudge("vllm/mine", context_window=0)
