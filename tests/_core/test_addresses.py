"""Objects by address: what is found where, what is not run, and what is said of what can't be used."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone import evaluate, load, parse_judge
from evalstone._core.addresses import beside, find, is_address, meant_by, origins
from evalstone.errors import ConfigError, DataError
from evalstone.judges import ModelJudge, Panel
from evalstone.scorers import EmbeddingSimilarity, parse_scorer

JUDGE = """
import json
from evalstone import Judge
from evalstone.questions.answers import JudgeAnswer

class Mine(Judge):
    strict: bool = False
    timeout: float = 5
    api_key: str = ""

    async def answer(self, question, repeat=0):
        reply = question.example()
        value = question.parse(json.dumps(reply))
        return JudgeAnswer(value=value, judge=self.identity, reply="{}", cost=0.0)

class Needs(Judge):
    url: str

    async def answer(self, question, repeat=0): ...

judge = Mine()
async def asks(): ...
number = 3
"""


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before, finders = set(sys.modules), sys.meta_path[:]
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("my_app:judge", True),
        ("my_app.sub:Some.judge", True),
        ("a b/file.py:judge", True),
        ("../file.py:judge", True),
        ("C:\\x\\file.py:judge", True),
        ("C:\\x:y", False),
        ("C:/x/y", False),
        ("my app:judge", False),
        ("ollama/llama3:8b", False),
        ("https://host.example/x", False),
        ("localhost:8080", False),
        ("my_app:", False),
        (":x", False),
    ],
)
def test_what_is_an_address(text: str, is_one: bool) -> None:
    assert is_address(text) is is_one
    if not is_one:
        with pytest.raises(ConfigError) as error:
            find(text, "the judge")
        assert error.value.kind == "invalid"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise KeyError('x')", r"own_bad:x can't be imported: KeyError: 'x' \(own_bad.py, line 1\)"),
        ("import sys\nsys.exit(3)", r"SystemExit: 3 \(own_bad.py, line 2\)"),
        ("def f(): f()\nf()", r"RecursionError: .* \(own_bad.py, line 1\)"),
        ("import no_such_library_x", r"ModuleNotFoundError: .*no_such_library_x"),
        ("def f(:", r"SyntaxError: .* \(own_bad.py, line 1\)"),
        ("def __getattr__(name): raise OSError(name)", r"OSError: x \(own_bad.py, line 1\)"),
    ],
)
def test_a_module_that_fails_is_named_with_its_line(code: str, told: str) -> None:
    write("own_bad.py", code)
    for address in ("own_bad:x", "own_bad.py:x"):
        with pytest.raises(ConfigError, match=told.replace("own_bad:x", address)):
            find(address, "the judge")


def test_the_nearest_module_file_and_name_are_suggested() -> None:
    write("own_judges.py", "strict_judge = 1\n")
    for address, kind, near in (
        ("own_judge:strict_judge", "missing", "own_judges?"),
        ("own_judge.py:strict_judge", "missing", "own_judges.py?"),
        ("own_judges:strict_juge", "unknown", "strict_judge?"),
    ):
        with pytest.raises(ConfigError) as error:
            find(address, "the judge")
        assert error.value.kind == kind
        assert str(error.value).endswith(near)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("my.short", ["my.py:short"]),
        ("my.py.short", ["my.py:short"]),
        ("a.my.Short", ["a/my.py:Short"]),
        ("other.short", ["other:short"]),
        ("my.py", ["my.py:NAME"]),
        ("short", []),
        ("gpt-5.1", []),
        ("a b.c", []),
    ],
)
def test_a_name_with_dots_may_be_meant_as_an_address(name: str, meant: list[str]) -> None:
    write("my.py", "")
    write("a/my.py", "")
    assert meant_by(name) == meant


def test_an_unknown_scorer_or_judge_with_a_dot_is_suggested_as_an_address() -> None:
    write("my.py", "")
    for parse, what in ((parse_scorer, "scorer"), (parse_judge, "judge")):
        with pytest.raises(ConfigError, match=rf"^unknown {what} 'my\.short'; did you mean my\.py:short\?"):
            parse("my.short")


def test_the_folder_of_a_file_comes_before_the_current_one_and_is_not_on_the_path() -> None:
    write("below/own_here.py", "from own_beside import value\n")
    write("below/own_beside.py", "value = 7\n")
    with beside("below") as found:
        assert find("own_here:value", "the judge") == find("own_here.py:value", "the scorer") == 7
    assert [what for what, _ in found] == ["the judge", "the scorer"]
    assert not any("below" in path for path in sys.path)
    with pytest.raises(ConfigError):
        find("own_beside_none:value", "the judge")


def test_an_object_of_a_file_is_found_in_another_process() -> None:
    write("json.py", "class Value: pass\n")
    value = find("json.py:Value", "the judge")
    (origin,) = origins({value.__module__})
    code = f"import pickle; from evalstone._core.addresses import *; restore(pickle.loads({pickle.dumps(origin)!r}));"
    code += f"print(pickle.loads({pickle.dumps(value)!r}).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "Value\n"


@pytest.mark.parametrize(
    "spec",
    [
        "own_j:judge",
        "own_j:Mine",
        "own_j.py:judge",
        " own_j:Mine(strict=false) ",
        {"model": "own_j:judge"},
        {"model": "own_j:Mine", "strict": False},
    ],
)
def test_a_judge_of_one_s_own_by_name(spec: Any) -> None:
    write("own_j.py", JUDGE)
    judge = parse_judge(spec)
    assert type(judge).__name__ == "Mine"
    for composite in (
        {"panel": [spec, "lexical"]},
        {"cascade": ["lexical", spec], "threshold": 0.5},
        {"self_consistency": spec},
        Panel(spec, "lexical"),
    ):
        assert judge.identity in [member.identity for member in parse_judge(composite).members]
    if isinstance(spec, str):
        assert parse_judge(f"panel({spec}, lexical)").members[0].identity == judge.identity
    scorer = parse_scorer({"name": "faithfulness", "judge": spec})
    assert scorer.judges[0].identity == judge.identity
    record = evaluate([{"output": "x", "context": ["x"]}], "faithfulness", judge=spec, ledger=None)
    assert record.judge == judge.identity


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("own_j:Needs", r"needs url: own_j:Needs\(url=…\)"),
        ("own_j:asks", "not a judge, but an async function"),
        ("own_j:number", "not a judge, but int: 3"),
        ("own_j:JudgeAnswer", "but a class that doesn't derive from evalstone.Judge"),
        ("own_j:Judge", "^Judge is a base class: derive a class that defines answer$"),
        ("own_j:judge(strict=true)", "takes none here"),
        ("own_j:Mine(strickt=true)", "did you mean strict"),
        ("own_j:Mine(max_requests=3)", "has no limits"),
        ("own_j:juge", "did you mean judge"),
    ],
)
def test_what_is_no_judge_is_refused(address: str, told: str) -> None:
    write("own_j.py", JUDGE)
    with pytest.raises(ConfigError, match=told):
        parse_judge(address)


def test_the_identity_of_a_judge_changes_with_its_settings_and_its_code() -> None:
    names: list[str] = []
    for number, code in enumerate((JUDGE, JUDGE.replace("strict: bool = False", "strict: bool = True"), JUDGE)):
        write(f"own_v{number}.py", code.replace("reply = question.example()", f"reply = [{number // 2}]"))
        names.append(parse_judge(f"own_v{number}:judge").identity)
    assert len(set(names)) == 3
    write("own_a.py", JUDGE)
    mine = find("own_a:Mine", "the judge")
    assert mine(strict=True).identity.startswith("Mine(strict=True)#")
    assert mine(strict=True).identity != mine().identity
    assert "sk-1" not in mine(api_key="sk-1").identity


def test_a_subclass_of_a_judge_of_evalstone_has_answers_of_its_own() -> None:
    class Loud(ModelJudge):
        pass

    plain, own = ModelJudge("openai/gpt-5.1"), Loud("openai/gpt-5.1")
    assert own.identity.startswith(f"{plain.identity}#")
    assert parse_judge(pickle.loads(pickle.dumps(plain))).identity == plain.identity


def test_an_embedder_by_name() -> None:
    write("own_e.py", "def embed(texts): return [[1.0, 0.0] for _ in texts]\nclass E: pass\nnumber = 1\n")
    for spec in (
        "embedding_similarity(embedder=own_e:embed)",
        {"name": "embedding_similarity", "embedder": "own_e.py:embed"},
        EmbeddingSimilarity("own_e:embed"),
        {"name": "embedding_similarity", "embedder": {"model": "own_e:embed"}},
    ):
        run = evaluate([{"output": "a", "reference": "b"}], spec, ledger=None)
        assert run["embedding_similarity"].mean == 1
        assert "own_e.embed#" in run.summary[0].info.signature
    for name in ("E", "number"):
        with pytest.raises(ConfigError, match="is not an embedder"):
            parse_scorer(f"embedding_similarity(embedder=own_e:{name})")


LOADERS = """
ROWS = [{"id": f"s{n}", "output": "x"} for n in range(3)]
rows = ROWS
def listed(): return ROWS
def yields(): yield from ROWS
class Own:
    def __iter__(self): return iter(ROWS)
own = Own()
def table():
    import pandas
    return pandas.DataFrame(ROWS)
def breaks():
    yield ROWS[0]
    raise OSError("no connection")
def needs(path): ...
async def waits(): ...
def nothing(): ...
def text(): return "own_l:text"
def empty(): return []
def wrong(): yield 3
"""


@pytest.mark.parametrize("name", ["rows", "listed", "yields", "own", "table"])
@pytest.mark.parametrize("module", ["own_l", "own_l.py"])
def test_samples_of_one_s_own_code(name: str, module: str) -> None:
    write("own_l.py", LOADERS)
    dataset = load(f"{module}:{name}")
    assert [sample.id for sample in dataset] == ["s0", "s1", "s2"]
    assert dataset.name == f"{module}:{name}"
    assert dataset.version == load([{"id": f"s{n}", "output": "x"} for n in range(3)]).version


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("breaks", DataError, r"after 1 samples: OSError: no connection \(own_l.py, line \d+\)"),
        ("needs", ConfigError, "can't be made: TypeError"),
        ("waits", ConfigError, "an async function"),
        ("nothing", ConfigError, "not NoneType"),
        ("text", ConfigError, "not str"),
        ("Own", ConfigError, "a class"),
        ("empty", DataError, "has no samples"),
        ("wrong", DataError, "item 1"),
        ("gone", ConfigError, "has no gone"),
    ],
)
def test_what_yields_no_samples_is_refused(name: str, kind: type[ConfigError], told: str) -> None:
    write("own_l.py", LOADERS)
    with pytest.raises(kind, match=told) as error:
        load(f"own_l:{name}")
    assert "own_l:" in str(error.value)


def test_a_file_of_the_name_comes_before_code_and_a_data_file_is_never_code() -> None:
    write("own_l.py", LOADERS)
    with pytest.raises(DataError, match="does not exist"):
        load("own_l:rows.jsonl")
    with pytest.raises(ConfigError, match=r"^https://host\.example/rows\.jsonl can't be read over HTTP"):
        load("https://host.example/rows.jsonl")
    Path("own_l:rows").write_text("")
    with pytest.raises(DataError, match="unknown suffix"):
        load("own_l:rows")
