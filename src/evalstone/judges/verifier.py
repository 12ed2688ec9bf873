"""Verifier models in ONNX files: whether a text supports a claim, from the logits of a small classifier.

    NLI cross-encoder     reads a premise and a claim          logits of entailment, neutral and contradiction
    token classifier      reads passages and an answer         logits of supported and hallucinated, for each token

A text that is longer than the model's window is read in several windows. This is the one module that imports
onnxruntime and tokenizers.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import mmap
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from evalstone._core.display import count, joined
from evalstone._core.guards import is_object
from evalstone._core.json import content_hash
from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, MissingDependency, absent, invalid

Outcome: TypeAlias = Literal["supported", "contradicted", "not_mentioned"]
"""What a label says of a claim. A label that is only the opposite of supported is `not_mentioned`."""

USUAL_WINDOW, LONGEST_WINDOW, SHORTEST_WINDOW = 512, 4096, 16
"""Tokens. The time for a window grows with its square."""
OVERLAP = 4
"""Windows inside one passage share this part of their tokens."""
SLACK = 2
"""Tokens that a text may have more between others than alone, such as for the end of a line."""
RULE = 1
"""Increase it with every change that can change a probability."""

_WORDS: Mapping[Outcome, str] = {
    "supported": "entailment entail entails entailed supported support supports consistent faithful grounded factual",
    "contradicted": "contradiction contradict contradicts contradicted contradictory refuted refute refutes",
    "not_mentioned": "neutral not_mentioned not_enough_info nei not_entailment non_entailment not_entailed "
    "unsupported not_supported hallucinated hallucination hallucinations inconsistent unfaithful ungrounded nonfactual",
}
LABELS: Mapping[str, Outcome] = {word: outcome for outcome, words in _WORDS.items() for word in words.split()}
"""The labels that are known, and what each says."""
TOKEN_LABELS = ("supported", "hallucinated")
"""The labels of a token classifier whose configuration doesn't name them."""
_UNNAMED = re.compile(r"label_\d+")
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_CONFIG, _TOKENIZER, _TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"
_MODEL = "model.onnx"
_LOCATION = re.compile(rb"\n\x08location\x12([\x80-\xff]?[\x01-\x7f])")
"""An entry of a tensor's external data, as protobuf writes it: the name of a file and its length."""
_LFS = b"version https://git-lfs"
_POSITIONS_FROM_PADDING = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer")
"""The types of models whose first positions are never used: one for padding, and those up to it."""


class ModelFiles(NamedTuple):
    """The files of a verifier model, and what its configuration says."""

    model: Path
    external: tuple[Path, ...]
    """Weights in files of their own."""
    tokenizer: Path
    labels: tuple[str, ...]
    """The labels in the order of the outputs; empty if the configuration names none."""
    window: int

    @property
    def digest(self) -> str:
        """A hash of the contents of the files, the labels and the window, with the rule for probabilities."""
        hashes = [_hash_of(path) for path in (self.model, *self.external, self.tokenizer)]
        return content_hash([RULE, *hashes, self.labels, self.window])


def model_files(path: Path, labels: Sequence[str] | None, window: int | None) -> ModelFiles:
    """The files of the model that a path names: a folder, or an ONNX file.

    In a folder, the model is `model.onnx` or `onnx/model.onnx`, or the one file with this suffix. The others are beside
    it, or in the folder above one named `onnx`. labels, window: instead of those of the configuration.

    Raises ConfigError for a file that is absent or can't be read, and names it.
    """
    model = _model_in(path)
    folders = (model.parent, model.parent.parent) if model.parent.name == "onnx" else (model.parent,)
    config = _config_in(folders, _CONFIG)
    if labels is None:
        labels = _labels_of(config, _place(folders, _CONFIG))
    if (tokenizer := _place(folders, _TOKENIZER)) is None:
        raise ConfigError(absent(_TOKENIZER, f"{model} needs its {_TOKENIZER} beside it; there is none"))
    if window is None:
        window = _window_of(config, _config_in(folders, _TOKENIZER_CONFIG))
    return ModelFiles(model, _external(model), tokenizer, tuple(labels), window)


def _model_in(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise ConfigError(
            f"there is no file or folder {path}; name a folder with {_MODEL}, {_CONFIG} and {_TOKENIZER}, or an ONNX "
            "file beside these"
        )
    for usual in (path / _MODEL, path / "onnx" / _MODEL):
        if usual.is_file():
            return usual
    found = sorted([*path.glob("*.onnx"), *path.glob("onnx/*.onnx")])
    if len(found) == 1:
        return found[0]
    names = joined([str(one.relative_to(path)) for one in found])
    problem = f"several models: {names}; name one of them" if found else f"no {_MODEL}"
    raise ConfigError(f"{path} has {problem}")


def _place(folders: Sequence[Path], name: str) -> Path | None:
    return next((path for folder in folders if (path := folder / name).is_file()), None)


def _config_in(folders: Sequence[Path], name: str) -> Mapping[str, Any]:
    """The configuration in a JSON file; empty without the file."""
    if (path := _place(folders, name)) is None:
        return {}
    try:
        data: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} can't be read as JSON: {error}") from None
    if not is_object(data):
        raise ConfigError(f"{path} has no JSON object")
    return data


def _labels_of(config: Mapping[str, Any], path: Path | None) -> tuple[str, ...]:
    named: object = config.get("id2label")
    if named is None:
        return ()
    numbers = {str(number) for number in range(len(named))} if is_object(named) else set[str]()
    if (
        not is_object(named)
        or not named
        or set(named) != numbers
        or not all(isinstance(w, str) for w in named.values())
    ):
        raise ConfigError(f"{path}: ", invalid("id2label", 'an object such as {"0": "entailment", …}', named))
    return tuple(str(named[str(number)]) for number in range(len(named)))


def _window_of(config: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> int:
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _POSITIONS_FROM_PADDING:
        padding = config.get("pad_token_id", 1)
        positions -= (padding if isinstance(padding, int) else 1) + 1
    known = [value for value in (positions, tokenizer.get("model_max_length")) if isinstance(value, int | float)]
    window = min((value for value in known if value >= SHORTEST_WINDOW), default=USUAL_WINDOW)
    return int(min(window, LONGEST_WINDOW))


def _external(model: Path) -> tuple[Path, ...]:
    """The files beside a model with its weights. Raises ConfigError for one that is absent or elsewhere, and for a file
    that is no model."""
    found: list[Path] = []
    for name in _external_names(model, _state_of(model)):
        path = model.parent / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ConfigError(f"{model} has weights in {name}, which is not in its folder")
        if not path.is_file():
            raise ConfigError(absent(name, f"{model} has weights in the file {name}, which isn't there"))
        found.append(path)
    return tuple(found)


class _State(NamedTuple):
    """What changes when a file is written."""

    size: int
    modified: int
    """When its content was changed, which copies and archives keep."""
    changed: int
    """When the content or the time above was changed, which nothing sets."""
    inode: int


def _state_of(path: Path) -> _State:
    stat = path.stat()
    return _State(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


@functools.lru_cache(maxsize=64)
def _external_names(model: Path, state: _State) -> tuple[str, ...]:
    """The files that a model names for its weights. state: of the model; it may have gigabytes."""
    if not (size := state.size):
        raise ConfigError(f"{model} is empty")
    names: dict[str, None] = {}
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(_LFS)] == _LFS:
            raise ConfigError(f"{model} is a pointer of Git LFS, not a model; get the file itself: git lfs pull")
        for place in _LOCATION.finditer(data):
            end = place.end() + sum((byte & 127) << 7 * n for n, byte in enumerate(place[1]))
            if end <= size:
                names.setdefault(data[place.end() : end].decode("utf-8", "replace"))
    return tuple(names)


def _hash_of(path: Path) -> str:
    return _hashed(str(path), _state_of(path))


@functools.lru_cache(maxsize=64)
def _hashed(path: str, state: _State) -> str:
    """The hash of a file in this state: models have gigabytes, and are hashed once."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Window:
    """What the model reads at once: tokens of passages and of claims.

    claims: the place of the claim of each token; None for tokens of passages, and between claims.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    claims: tuple[int | None, ...]


class Verifier:
    """A loaded verifier model. Its methods may be called from several threads.

    Raises:
        ConfigError: The files are no such model. The message names the file and what was expected.
        MissingDependency: onnxruntime or tokenizers is not installed.
    """

    def __init__(self, files: ModelFiles) -> None:
        self.files = files
        self._tokenizer, self._counter = _tokenizers(files)
        self._session, self._output = _session(files)
        self._inputs = {each.name: each.type for each in self._session.get_inputs()}
        if unexpected := sorted(self._inputs.keys() - set(_INPUTS)):
            raise ConfigError(
                f"{files.model} has the input {unexpected[0]}; a verifier model has {joined(_INPUTS[:2])}, and may "
                f"have {_INPUTS[2]}"
            )
        if _INPUTS[0] not in self._inputs:
            raise ConfigError(f"{files.model} has no input {_INPUTS[0]}")
        for each in self._session.get_inputs():
            if any(isinstance(size, int) and (place or size != 1) for place, size in enumerate(each.shape)):
                shape = " × ".join("any" if size is None else str(size) for size in each.shape)
                raise ConfigError(
                    f"{files.model}: {each.name} has the fixed shape {shape}; expected 1 × any number of tokens: "
                    "export the model with dynamic axes"
                )
        logits = self._try_out()
        self.by_token = logits.ndim == 3
        """Whether it is a token classifier."""
        self.outcomes = _outcomes(files, logits.shape[-1], by_token=self.by_token)
        """What each output says."""

    def _try_out(self) -> Any:
        """The logits of a short text. Raises ConfigError if the model can't read it, or its outputs are no logits."""
        window = next(self.windows(["a"], ["a"]))
        try:
            logits = self._run(window)
        except Exception as error:  # noqa: BLE001 - the library's errors have no class in common
            raise ConfigError(f"{self.files.model} can't read a short text: {_said(error)}") from None
        if logits.dtype.kind != "f":
            raise ConfigError(f"{self.files.model}: {self._output} has {logits.dtype} values; logits are floats")
        expected = {2: (1,), 3: (1, len(window.ids))}
        if logits.shape[:-1] != expected.get(logits.ndim):
            shape = " × ".join(map(str, logits.shape))
            raise ConfigError(
                f"{self.files.model}: {self._output} has the shape {shape} for {len(window.ids)} tokens; expected "
                "1 × labels, or for a token classifier 1 × tokens × labels"
            )
        return logits

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        return len(self._counter.encode(text, add_special_tokens=False).ids)

    @property
    def space(self) -> int:
        """The tokens of a window for claims and passages."""
        return self.files.window - self._counter.num_special_tokens_to_add(True) - SLACK

    def groups(self, claims: Sequence[str]) -> list[list[int]]:
        """The claims that are read together, by their places: one at a time, or as an answer of at most half a window.

        Raises JudgeDeclined for a claim that is longer than half a window.
        """
        groups: list[list[int]] = []
        used = most = self.space // 2
        for place, claim in enumerate(claims):
            tokens = self.count(claim)
            if not tokens:
                raise JudgeDeclined(f"claim {place + 1} is empty")
            if tokens > most:
                long = f"has {count(tokens, 'token')}, and at most {most:,} fit into half a window"
                raise JudgeDeclined(f"claim {place + 1} {long} of the verifier model")
            if not self.by_token or used + tokens + SLACK > most:
                groups.append([])
                used = 0
            groups[-1].append(place)
            used += tokens + SLACK
        return groups

    def windows(self, passages: Sequence[str], claims: Sequence[str]) -> Iterator[Window]:
        """The windows in which the passages are read with these claims, as one text.

        Passages stay whole if they fit. A longer one is read in windows that overlap by a quarter.
        """
        answer = " ".join(claims)
        starts = [0]
        for claim in claims:
            starts.append(starts[-1] + len(claim) + 1)
        space = self.space - self.count(answer)
        for premise in self._premises(passages, space):
            read = self._tokenizer.encode(premise, answer)
            places = [
                next((n for n, start in enumerate(starts[1:]) if begin < start - 1), None)
                if of == 1 and begin < end and not special
                else None
                for of, (begin, end), special in zip(
                    read.sequence_ids, read.offsets, read.special_tokens_mask, strict=True
                )
            ]
            yield Window(tuple(read.ids), tuple(read.type_ids), tuple(places))

    def _premises(self, passages: Sequence[str], space: int) -> Iterator[str]:
        """The passages as texts of at most so many tokens."""
        group: list[str] = []
        used = 0
        for passage in passages:
            tokens = self.count(passage) + SLACK
            if group and used + tokens > space:
                yield "\n".join(group)
                group, used = [], 0
            if tokens > space:
                yield from self._pieces(passage, space - SLACK)
            else:
                group.append(passage)
                used += tokens
        if group or not passages:
            yield "\n".join(group)

    def _pieces(self, text: str, space: int) -> Iterator[str]:
        """A text in pieces of so many tokens that overlap."""
        offsets = self._counter.encode(text, add_special_tokens=False).offsets
        step = max(1, space - space // OVERLAP)
        for start in range(0, max(1, len(offsets) - space + step), step):
            piece = offsets[start : start + space]
            yield text[piece[0][0] : piece[-1][1]]

    def support(self, window: Window) -> Mapping[int, Mapping[Outcome, float]]:
        """The probability of each outcome for each claim in a window.

        Of a token classifier, that a claim is supported is the lowest probability that one of its tokens is.

        Raises JudgeError if a logit isn't finite.
        """
        try:
            logits = self._run(window)[0].tolist()
        except Exception as error:  # noqa: BLE001 - the library's errors have no class in common
            raise JudgeError(f"{self.files.model.name} can't read a window: {_said(error)}") from None
        if not self.by_token:
            return {0: self._shares(logits)}
        lowest: dict[int, Mapping[Outcome, float]] = {}
        for place, values in zip(window.claims, logits, strict=True):
            if place is not None:
                shares = self._shares(values)
                if place not in lowest or shares["supported"] < lowest[place]["supported"]:
                    lowest[place] = shares
        return lowest

    def _shares(self, logits: Sequence[float]) -> Mapping[Outcome, float]:
        """The softmax of logits, as the probability of each outcome."""
        if not all(map(math.isfinite, logits)):
            raise JudgeError(f"{self.files.model.name} gave a logit that isn't finite")
        highest = max(logits)
        weights = [math.exp(value - highest) for value in logits]
        shares: dict[Outcome, float] = dict.fromkeys(_WORDS, 0.0)
        for outcome, weight in zip(self.outcomes, weights, strict=True):
            shares[outcome] += weight / math.fsum(weights)
        return shares

    def _run(self, window: Window) -> Any:
        """The model's output for one window. Windows aren't batched: padding would make an answer depend on what else
        is read, and quantized models scale a batch as a whole."""
        import numpy as np  # noqa: PLC0415 - slow to import

        values = (window.ids, (1,) * len(window.ids), window.types)
        kinds = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
        feed = {
            name: np.asarray([value], kinds.get(self._inputs[name], np.int64))
            for name, value in zip(_INPUTS, values, strict=True)
            if name in self._inputs
        }
        return self._session.run([self._output], feed)[0]


def _tokenizers(files: ModelFiles) -> tuple[Any, Any]:
    """The tokenizer that cuts what doesn't fit, and one that doesn't cut."""
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an optional library
    except ImportError:
        raise MissingDependency("tokenizers", "onnx") from None
    make: Any = Tokenizer
    try:
        cutting, counting = make.from_file(str(files.tokenizer)), make.from_file(str(files.tokenizer))
    except Exception as error:  # noqa: BLE001 - the library raises Exception
        raise ConfigError(f"{files.tokenizer} is no tokenizer: {_said(error)}") from None
    for tokenizer in (cutting, counting):
        tokenizer.no_padding()
        tokenizer.no_truncation()
    cutting.enable_truncation(files.window, strategy="only_first")
    return cutting, counting


def _session(files: ModelFiles) -> tuple[Any, str]:
    """The model in onnxruntime, and the name of its output."""
    try:
        import onnxruntime  # noqa: PLC0415 - an optional library
    except ImportError:
        raise MissingDependency("onnxruntime", "onnx") from None
    library = cast("Any", onnxruntime)
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # windows are read in several threads
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    try:
        session = library.InferenceSession(str(files.model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the library's errors have no class in common
        raise ConfigError(f"{files.model} can't be loaded as an ONNX model: {_said(error)}") from None
    names = [each.name for each in session.get_outputs()]
    if len(names) > 1 and "logits" not in names:
        raise ConfigError(f"{files.model} has the outputs {joined(names)}; expected one, or one named logits")
    return session, "logits" if "logits" in names else names[0]


def _outcomes(files: ModelFiles, outputs: int, *, by_token: bool) -> tuple[Outcome, ...]:
    """What each output says. Raises ConfigError for labels that are unknown or don't say it."""
    labels = files.labels
    unnamed = all(_UNNAMED.fullmatch(label.casefold()) for label in labels)
    if by_token and unnamed and outputs == len(TOKEN_LABELS):
        labels = TOKEN_LABELS
    elif not labels or unnamed:
        raise ConfigError(
            f"{files.model} has {count(outputs, 'output')} and no names for them in id2label of {_CONFIG}; name them "
            'in their order, as in labels=["entailment", "neutral", "contradiction"]'
        )
    if len(labels) != outputs:
        raise ConfigError(
            f"{files.model} has {count(outputs, 'output')} and {count(len(labels), 'label')}: {joined(labels)}"
        )
    outcomes: list[Outcome] = []
    for label in labels:
        outcome = LABELS.get(re.sub(r"[\W_]+", "_", label.casefold()).strip("_"))
        if outcome is None:
            expected = "entailment, neutral and contradiction, or supported and hallucinated"
            raise ConfigError(f"{files.model}: ", invalid("the label", f"one such as {expected}", label, repr(label)))
        outcomes.append(outcome)
    if outcomes.count("supported") != 1 or len(set(outcomes)) < len(outcomes) or len(outcomes) < 2:
        raise ConfigError(
            f"{files.model}: the labels {joined(labels)} don't say what a verdict is; expected one for what is "
            "supported and one or two for what isn't, as in entailment, neutral and contradiction"
        )
    return tuple(outcomes)


def _said(error: Exception) -> str:
    """What an error of a library says, in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


_lock = threading.Lock()
_LOADED = 4
_loaded: dict[tuple[Any, ...], Verifier] = {}


def loaded(files: ModelFiles) -> Verifier:
    """The verifier of these files. The last few stay in memory; files that have changed are loaded again.

    Raises as `Verifier` does.
    """
    paths = (files.model, *files.external, files.tokenizer)
    key = (files, tuple(map(_state_of, paths)))
    with _lock:
        verifier = _loaded.pop(key, None) or Verifier(files)
        _loaded[key] = verifier
        while len(_loaded) > _LOADED:
            del _loaded[next(iter(_loaded))]
    return verifier
