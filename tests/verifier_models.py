"""Tiny verifier models in ONNX files: a word has a weight for each label, and a text the sum of those of its words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

WORDS = ("the", "museum", "it", "is", "free", "closed", "yes", "no", "maybe", "bad")
NLI = ("entailment", "neutral", "contradiction")
MEANING: Mapping[str, Sequence[float]] = {"yes": (6, 0, 0), "no": (0, 0, 6), "maybe": (0, 6, 0)}
"""What a word of a text says of the claim, as added logits of `NLI`."""


def save_verifier(
    folder: Path,
    weights: Mapping[str, Sequence[float]] | int = MEANING,
    *,
    labels: Sequence[str] | None = NLI,
    by_token: bool = False,
    window: int = 64,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    ids: int = TensorProto.INT64,
    output: int = TensorProto.FLOAT,
    external: str = "",
    shape: tuple[int | str, int | str] = ("batch", "tokens"),
    words: Sequence[str] = WORDS,
    name: str = "model.onnx",
    **config: Any,
) -> Path:
    """Save a verifier model in a folder, and return the folder.

    weights: By word, what it adds to the logits; a number is the seed of random ones. labels: None names none.
    by_token: A token classifier: the weights of the words in `MEANING` count for all tokens, those of others for their
    own. external: The file of the weights. shape: Of the inputs; numbers are fixed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 2 if labels is None else len(labels)
    vocabulary = {word: n for n, word in enumerate(["[UNK]", "[CLS]", "[SEP]", *words])}
    if isinstance(weights, int):
        table = np.random.default_rng(weights).normal(0, 1, (len(vocabulary), count))
    else:
        table = np.zeros((len(vocabulary), count))
        for word, values in weights.items():
            table[vocabulary[word]] = values[:count]
    _save_tokenizer(folder, vocabulary)
    spread = [vocabulary[word] for word in MEANING if word in vocabulary] if by_token else list(vocabulary.values())
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    _save_graph(path, table.astype(np.float32), spread, by_token, inputs, ids, output, external, shape)
    named = {} if labels is None else {"id2label": {str(n): label for n, label in enumerate(labels)}}
    (folder / "config.json").write_text(json.dumps({**named, "max_position_embeddings": window, **config}))
    return folder


def _save_tokenizer(folder: Path, vocabulary: dict[str, int]) -> None:
    tokenizer: Any = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    # As published ones often have it.
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))


def _save_graph(
    path: Path,
    table: Any,
    spread: Sequence[int],
    by_token: bool,
    inputs: Sequence[str],
    ids: int,
    output: int,
    external: str,
    of_inputs: tuple[int | str, int | str],
) -> None:
    """spread: The words that count for the whole text."""
    of_text = np.zeros_like(table)
    of_text[spread] = table[spread]
    of_token = table - of_text
    nodes = [
        helper.make_node("Gather", ["of token", inputs[0]], ["words"]),
        helper.make_node("Gather", ["of text", inputs[0]], ["meanings"]),
        helper.make_node("ReduceSum", ["meanings", "axis"], ["text"], keepdims=int(by_token)),
    ]
    nodes += [helper.make_node("Add", ["words", "text"], ["sum"])] if by_token else []
    nodes += [helper.make_node("Cast", ["sum" if by_token else "text"], ["logits"], to=output)]
    shape = [*of_inputs, table.shape[1]] if by_token else [of_inputs[0], table.shape[1]]
    constants = [
        numpy_helper.from_array(of_token, "of token"),
        numpy_helper.from_array(of_text, "of text"),
        numpy_helper.from_array(np.array([1]), "axis"),
    ]
    graph = helper.make_graph(
        nodes,
        "verifier",
        [helper.make_tensor_value_info(name, ids, of_inputs) for name in inputs],
        [helper.make_tensor_value_info("logits", output, shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    library: Any = onnx
    library.save(model, str(path), save_as_external_data=bool(external), location=external or None, size_threshold=64)
