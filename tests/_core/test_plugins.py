"""Scorers and judges that installed packages add: how they are named, why they are refused, and their identity."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstone import ConfigError, Score, evaluate, parse_judge, score
from evalstone._core.plugins import Plugins
from evalstone.errors import EvalstoneWarning
from evalstone.judges import LexicalJudge
from evalstone.judges.parse import PLUGINS as JUDGE_PLUGINS
from evalstone.judges.parse import added as added_judge
from evalstone.run.hidden_plugins import hidden_plugins
from evalstone.scorers import SCORERS, parse_scorer
from evalstone.scorers.described import plugged_in
from evalstone.scorers.registry import PLUGINS as SCORER_PLUGINS
from evalstone.scorers.registry import added as added_scorer
from evalstone.types.scorer_names import is_named, without_fingerprints
from tests import packages
from tests.packages import installed
from tests.refusals import refused

ACME = """
    from evalstone import Judge, LLMClassifier, Score, Scorer, scorer

    class Polite(Scorer):
        '''Whether the answer thanks.'''

        name = "polite"
        word: str = "thanks"

        def score(self, *, output: str) -> Score:
            return Score(float(self.word in output))

    def brief(output: str) -> bool:
        '''Whether the answer is brief.'''
        return len(output) < 20

    @scorer(name="rude")
    def impolite(output: str) -> bool:
        return "thanks" not in output

    calm = LLMClassifier("Is {{output}} calm?", choices={"yes": 1, "no": 0}, name="calm")

    class AcmeJudge(Judge):
        model: str
        strict: bool = False

        async def answer(self, question, repeat=0):
            raise NotImplementedError

    ready = AcmeJudge(model="small")
"""
NAMES = {"polite": "Polite", "brief": "brief", "rude": "impolite", "calm": "calm"}
JUDGES = {"acme": "AcmeJudge", "acme-small": "ready"}
OF_ACME = {
    packages.SCORERS: {name: f"acme_eval:{value}" for name, value in NAMES.items()},
    packages.JUDGES: {name: f"acme_eval:{value}" for name, value in JUDGES.items()},
}


@pytest.fixture
def acme(site: Path) -> Path:
    """A package with scorers and judges."""
    return installed(site, "acme-eval", OF_ACME, {"acme_eval": ACME})


@pytest.mark.usefixtures("acme")
def test_a_scorer_of_a_package_is_named_like_a_built_in_one() -> None:
    assert {name: type(parse_scorer(name)).__name__ for name in NAMES} == {
        "polite": "Polite",
        "brief": "FunctionScorer",
        "rude": "FunctionScorer",
        "calm": "LLMClassifier",
    }
    run = evaluate([{"output": "thanks a lot"}, {"output": "no"}], ["polite(word=no)", "brief", "rude"], ledger=None)
    assert {name: run.mean(name) for name in ("polite", "brief", "rude")} == {"polite": 0.5, "brief": 1.0, "rude": 0.5}
    assert parse_scorer({"name": "polite", "word": "please"}) == parse_scorer("polite(word=please)")
    assert parse_scorer("per_turn(scorer=polite)") == parse_scorer({"name": "per_turn", "scorer": "polite"})


@pytest.mark.usefixtures("acme")
def test_an_unknown_name_is_likened_to_those_of_packages() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_scorer("polit")
    assert raised.value.near == ("polite",)
    with pytest.raises(ConfigError) as raised:
        parse_judge("acmee")
    assert raised.value.near[0] == "acme"
    with pytest.raises(ConfigError) as raised:
        parse_judge("acmee/small")
    assert raised.value.near[0] == "acme"


@pytest.mark.usefixtures("acme")
def test_a_judge_of_a_package_takes_its_settings_and_its_model_from_the_line() -> None:
    named, table = parse_judge("acme/large(strict=true)"), {"model": "acme/large", "strict": True}
    assert named == parse_judge(table)
    assert named.identity.startswith("AcmeJudge(model=large, strict=True)#")
    assert parse_judge("acme-small").identity == parse_judge("acme/small").identity
    panel = parse_judge("panel(acme/a, acme/b, lexical)")
    assert [member.identity.partition("#")[0] for member in panel.members[:2]] == [
        "AcmeJudge(model=a)",
        "AcmeJudge(model=b)",
    ]
    with pytest.raises(ConfigError) as raised:
        parse_judge("acme")
    assert (raised.value.kind, raised.value.field) == ("missing", "model")
    assert "acme(model=" in str(raised.value)
    for line in ("acme(model=large)", "openai/gpt-5.1(model=large)", "acme_eval:AcmeJudge(model=large)"):
        with refused("model"):
            parse_judge(line)
    with pytest.raises(ConfigError, match="settings of its own"):
        parse_judge("acme-small(strict=true)")


def test_the_version_of_its_package_is_in_the_identity_by_whichever_name(acme: Path) -> None:
    by_name, judge = parse_scorer("polite(word=no)"), parse_judge("acme/large")
    module = importlib.import_module("acme_eval")
    assert by_name.signature == module.Polite(word="no").signature == pickle.loads(pickle.dumps(by_name)).signature
    assert by_name.signature == parse_scorer("acme_eval:Polite(word=no)").signature
    assert judge.identity == module.AcmeJudge(model="large").identity
    assert "acme-eval==1.2.0" in judge.identity
    assert parse_scorer("brief").signature == parse_scorer(module.brief).signature
    for text in ("polite(word=no)", "polite", by_name.signature):
        assert is_named(by_name.signature, text)
    assert without_fingerprints(by_name.signature) == "polite(word=no)"
    assert without_fingerprints(parse_scorer("polite").signature) == "polite"
    before = {name: parse_scorer(name).signature for name in NAMES}
    (acme / "acme_eval-1.2.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-eval\nVersion: 1.3.0\n"
    )
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from evalstone import parse_judge\nfrom evalstone.scorers import parse_scorer\n"
            "print(*(parse_scorer(name).signature for name in sys.argv[2:]), sep='\\n')\n"
            "print(parse_judge('acme/large').identity)",
            str(acme),
            *NAMES,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    *signatures, identity = (line.replace("1.3.0", "1.2.0") for line in told)
    assert signatures == list(before.values())
    assert identity == judge.identity
    changed = [name for name, line in zip(NAMES, told, strict=False) if line != before[name]]
    assert changed == ["polite", "brief", "rude"]  # the classifier is data, and all in its signature


def test_a_class_that_derives_from_that_of_a_package_has_its_version(acme: Path) -> None:
    base = importlib.import_module("acme_eval").Polite

    class Kind(base):
        name = "kind"

        def score(self, *, output: str) -> Score:
            return Score(1.0)

    assert "acme-eval==1.2.0" in Kind().signature
    assert acme.is_dir()


TAKEN = {"faithfulness": "brief", "geval": "brief"}
TAKEN_JUDGES = {"lexical": "AcmeJudge", "panel": "AcmeJudge", "openai": "AcmeJudge"}


def test_a_package_can_not_replace_what_is_built_in(site: Path) -> None:
    own, judge = parse_scorer("faithfulness").signature, parse_judge("lexical").identity
    entries = {
        packages.SCORERS: {name: f"acme_eval:{value}" for name, value in TAKEN.items()},
        packages.JUDGES: {name: f"acme_eval:{value}" for name, value in TAKEN_JUDGES.items()},
    }
    installed(site, "acme-eval", entries, {"acme_eval": ACME})
    assert parse_scorer("faithfulness").signature == own
    assert parse_judge("lexical").identity == judge
    assert parse_judge("openai/m").identity == "openai/m"
    groups: list[tuple[Plugins, set[str]]] = [(SCORER_PLUGINS, {*TAKEN}), (JUDGE_PLUGINS, {*TAKEN_JUDGES})]
    for plugins, names in groups:
        assert {each.name for each in plugins} == names
        assert plugins.names() == []
        for plugin in plugins:
            with pytest.raises(ConfigError) as raised:
                plugins.check(plugin)
            assert (raised.value.kind, raised.value.value) == ("repeated", plugin.name)
            assert {"evalstone", "acme-eval", "1.2.0"} <= {*str(raised.value).replace(";", " ").split()}


def test_a_name_of_two_packages_is_refused_with_both(acme: Path) -> None:
    entries = {
        packages.SCORERS: {"polite": "other:polite", "other": "acme_eval:brief"},
        packages.PROVIDERS: {"acme": "other:INFO"},
    }
    installed(acme, "other-eval", entries, version="3.1")
    for parse, name, field in (
        (parse_scorer, "polite", "scorer"),
        (parse_judge, "acme/large", "judge"),
    ):
        with pytest.raises(ConfigError) as raised:
            parse(name)
        assert (raised.value.kind, raised.value.field) == ("repeated", field)
        assert {"acme-eval 1.2.0", "other-eval 3.1"} == {
            each for each in ("acme-eval 1.2.0", "other-eval 3.1") if each in str(raised.value)
        }
    assert parse_scorer("brief").name == "brief"


def test_the_first_of_two_versions_of_a_package_counts(
    acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path / "older", "acme-eval", {packages.SCORERS: {"ancient": "acme_eval:old"}}, version="0.9")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "older"), str(acme)])
    assert SCORER_PLUGINS.names() == sorted(NAMES)
    assert "acme-eval==1.2.0" in parse_scorer("polite").signature
    assert "0.9" not in parse_scorer("polite").signature


HOSTILE = {
    "raises": ("1 / 0", "ZeroDivisionError"),
    "leaves": ("import sys\nsys.exit(7)", "SystemExit: 7"),
    "lacks": ("import no_such_library", "no_such_library"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_package_whose_module_fails_breaks_its_own_names_only(name: str, site: Path) -> None:
    source, told = HOSTILE[name]
    module = f"acme_{name}"
    entries = {packages.SCORERS: {name: f"{module}:X"}, packages.JUDGES: {f"{name}-judge": f"{module}:X"}}
    installed(site, "acme-eval", entries, {module: source})
    for parse, of in ((parse_scorer, name), (parse_judge, f"{name}-judge"), (parse_judge, f"{name}-judge/m")):
        with pytest.raises(ConfigError, match=told) as raised:
            parse(of)
        assert "acme-eval 1.2.0" in str(raised.value)
    assert parse_scorer("contains(expected=x)").name == "contains"
    assert parse_judge("lexical").members == ()
    with pytest.raises(ConfigError) as raised:
        parse_scorer("summarizatio")
    assert raised.value.near == ("summarization",)


def test_what_a_module_prints_is_no_result(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "print('hello')\ndef loud(output):\n    return 1.0\n"
    installed(site, "acme-eval", {packages.SCORERS: {"loud": "acme_loud:loud"}}, {"acme_loud": source})
    assert parse_scorer("loud").name == "loud"
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


WRONG = {
    "number": ("acme_wrong:NUMBER", "int: 5"),
    "whole": ("acme_wrong", "module:name"),
    "absent": ("acme_wrong:NOWHERE", "NOWHERE"),
    "other": ("acme_wrong:fine", "fine"),
    "unnamed": ("acme_wrong:Unnamed", "name"),
    "kind": ("acme_wrong:Kind", "evalstone.Scorer"),
    "my-name": ("acme_wrong:fine", "letters"),
    "not a name": ("acme_wrong:fine", "letters"),
    "lambda_": ("acme_wrong:LAMBDA", "lambda"),
}


def test_an_object_that_is_no_scorer_of_that_name_is_refused(site: Path) -> None:
    source = """
        from evalstone import Scorer
        NUMBER = 5
        LAMBDA = lambda output: 1.0
        class Kind: ...
        class Unnamed(Scorer):
            def score(self, *, output): ...
        def fine(output):
            return 1.0
    """
    entries = {packages.SCORERS: {name: address for name, (address, _) in WRONG.items()} | {"fine": "acme_wrong:fine"}}
    installed(site, "acme-eval", entries, {"acme_wrong": source})
    plugins = {plugin.name: plugin for plugin in SCORER_PLUGINS}
    assert plugins.keys() == {*WRONG, "fine"}
    for name, (_, told) in WRONG.items():
        with pytest.raises(ConfigError, match=told) as raised:
            added_scorer(plugins[name])
        assert "acme-eval 1.2.0" in str(raised.value), name
    assert parse_scorer("fine").name == "fine"
    with pytest.raises(ConfigError, match="letters"):
        parse_scorer("my-name")


RAISING = """
    from evalstone import Score, Scorer

    class Odd:
        def __getattr__(self, name):
            raise RuntimeError("odd " + name)

    class Made:
        def as_scorer(self):
            raise OSError("no disk")

    class Undescribed(Scorer):
        name = "fields"

        @property
        def required_fields(self):
            raise RuntimeError("no fields")

        def score(self, *, output: str) -> Score: ...

    class Post(Scorer):
        name = "post"

        def __post_init__(self):
            raise ValueError("not today")

        def score(self, *, output: str) -> Score: ...

    class Lazy(type(Scorer)):
        @property
        def name(cls):
            raise RuntimeError("no name")

    class Unnamed(Scorer, metaclass=Lazy):
        def score(self, *, output: str) -> Score: ...

    odd, made, fields = Odd(), Made(), Undescribed()
"""
PARTS = {
    "odd": "can't be made: RuntimeError: odd as_scorer",
    "made": "can't be made: OSError: no disk",
    "fields": "can't be described: RuntimeError: no fields",
    "unnamed": "can't be made: RuntimeError: no name",
}


def test_what_the_code_of_a_package_raises_is_said_of_its_own_scorer(site: Path) -> None:
    """An OSError in it is none of writing to the terminal, and others are listed nevertheless."""
    places = {"odd": "odd", "made": "made", "fields": "fields", "unnamed": "Unnamed", "post": "Post"}
    entries = {packages.SCORERS: {name: f"acme_raising:{value}" for name, value in places.items()}}
    installed(site, "acme-eval", entries, {"acme_raising": RAISING})
    told = dict[str, str]()
    for plugin in SCORER_PLUGINS:
        try:
            plugged_in(plugin)
        except ConfigError as error:
            told[plugin.name] = str(error).partition(" (acme_raising.py, line ")[0]
    assert told == {name: f"the scorer {name} of acme-eval 1.2.0 {part}" for name, part in PARTS.items()}
    for name in ("odd", "made"):
        with pytest.raises(ConfigError, match=PARTS[name].partition(": ")[2]):
            parse_scorer(f"acme_raising:{name}")
    with pytest.raises(ConfigError, match=r"post can't be made: ValueError: not today \(acme_raising.py, line 25\)"):
        parse_scorer("post")


def test_an_object_that_is_no_judge_is_refused(site: Path) -> None:
    entries = {packages.JUDGES: {"number": "acme_wrong:NUMBER", "kind": "acme_wrong:Kind", "a/b": "acme_wrong:NUMBER"}}
    installed(site, "acme-eval", entries, {"acme_wrong": "NUMBER = 5\nclass Kind: ...\n"})
    for plugin in JUDGE_PLUGINS:
        with pytest.raises(ConfigError):
            added_judge(plugin)
    for name in ("number", "kind", "kind/large"):
        with pytest.raises(ConfigError) as raised:
            parse_judge(name)
        assert (raised.value.kind, raised.value.allowed) == ("invalid", "a judge")


@pytest.mark.parametrize(
    "text", ["[evalstone.scorers]\nno entry\n", "[evalstone.judges]\nx\n[evalstone.scorers]\ny = a:b\n"]
)
def test_entry_points_that_can_not_be_read_hide_no_others(text: str, acme: Path) -> None:
    installed(acme, "odd-eval", text, version="2")
    (acme / "binary-1.dist-info").mkdir()
    (acme / "binary-1.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe[evalstone.scorers]")
    (acme / "nameless-1.dist-info").mkdir()
    (acme / "nameless-1.dist-info" / "entry_points.txt").write_text("[evalstone.scorers]\nnameless = acme_eval:brief\n")
    assert parse_scorer("polite").name == "polite"
    assert SCORER_PLUGINS.names() == sorted([*NAMES, "nameless"])
    (odd,) = (each for each in SCORER_PLUGINS if each.problem)
    with pytest.raises(ConfigError, match="odd-eval 2"):
        SCORER_PLUGINS.check(odd)


def test_a_module_of_the_current_folder_is_not_taken_for_that_of_a_package(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, "acme-eval", {packages.SCORERS: {"stale": "acme_stale:stale"}})
    (tmp_path / "acme_stale.py").write_text("raise RuntimeError('run')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="No module named 'acme_stale'"):
        parse_scorer("stale")


def test_built_in_names_need_no_entry_points() -> None:
    code = (
        "import sys, importlib.metadata as metadata\n"
        "def refuse(*a, **k): raise SystemExit('read')\n"
        "metadata.distributions = metadata.entry_points = refuse\n"
        "import evalstone\nfrom evalstone.scorers import SCORERS, parse_scorer\n"
        "for name in ('faithfulness', 'contains(expected=x)', 'answer-similarity'): parse_scorer(name).signature\n"
        "for name in ('lexical', 'openai/gpt-5.1', 'panel(lexical, ollama/x)'): evalstone.parse_judge(name).identity\n"
        "scorer = evalstone.checks.Contains(expected='x')\n"
        "print(evalstone.evaluate([{'output': 'x'}], scorer, judge=None, ledger=None).mean('contains'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("1.0", 0), done.stderr


def test_a_plug_in_with_a_built_in_name_that_is_used_is_named_in_a_warning(site: Path) -> None:
    entries = {
        packages.SCORERS: {"contains": "acme_eval:Polite"},
        packages.JUDGES: {"lexical": "acme_eval:AcmeJudge"},
        packages.PROVIDERS: {"openai": "acme_eval:AcmeJudge"},
    }
    installed(site, "acme-eval", entries, {"acme_eval": ACME})
    kinds = ("scorer contains", "judge lexical", "provider openai")
    scorer, judge, provider = (f"the {kind} of acme-eval 1.2.0 is not used" for kind in kinds)

    def said(call: Callable[[], object]) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [str(one.message).partition(":")[0] for one in caught if one.category is EvalstoneWarning]

    named = {"name": "contains", "expected": "x"}
    assert said(lambda: evaluate([{"output": "x"}], [named], ledger=None)) == [scorer, judge]
    assert said(lambda: score("contains(expected=x)", output="x", judge=None)) == [scorer]
    assert said(lambda: score(parse_scorer(named), output="x", judge=LexicalJudge())) == []
    assert [each.partition(":")[0] for each in hidden_plugins((), "openai/gpt-5.1")] == [provider]


def test_no_built_in_name_is_taken_by_a_package_of_this_environment() -> None:
    assert not SCORER_PLUGINS.names()
    assert {*SCORERS} <= {*SCORER_PLUGINS.built_in}
