"""A language model of random numbers, as a GGUF file of half a megabyte: what a real server loads in a second.

It has llama's shape in the smallest size, a vocabulary of bytes and printable characters, and no idea of anything. Its
words are noise: within a closed schema what it says is valid and arbitrary, and free text of it has control characters
and no end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, LAYERS, HEADS, INNER, LENGTH = 64, 2, 4, 128, 4096
ALIGNMENT = 32
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

Matrix = NDArray[np.float32]


def vocabulary() -> list[tuple[str, int]]:
    """The tokens and their kinds: three marks, every byte, every printable ASCII character."""
    marks = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    return (
        marks
        + [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
        + [("\u2581" if code == ord(" ") else chr(code), NORMAL) for code in range(32, 127)]
    )


def settings(tokens: Sequence[tuple[str, int]]) -> list[bytes]:
    """The file's table of keys and values."""
    sizes = {
        "context_length": LENGTH,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.head_count_kv": HEADS,
        "rope.dimension_count": WIDTH // HEADS,
        "vocab_size": len(tokens),
    }
    marks = {"unknown_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return [
        keyed("general.architecture", STRING, text("llama")),
        keyed("llama.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", 1e-5)),
        keyed("tokenizer.ggml.model", STRING, text("llama")),
        keyed("tokenizer.ggml.tokens", ARRAY, array(STRING, [text(token) for token, _ in tokens])),
        keyed("tokenizer.ggml.scores", ARRAY, array(FLOAT32, [struct.pack("<f", -n) for n in range(len(tokens))])),
        keyed("tokenizer.ggml.token_type", ARRAY, array(INT32, [struct.pack("<i", kind) for _, kind in tokens])),
        *(keyed(f"llama.{name}", UINT32, struct.pack("<I", value)) for name, value in sizes.items()),
        *(keyed(f"tokenizer.ggml.{name}", UINT32, struct.pack("<I", value)) for name, value in marks.items()),
    ]


def tensors(tokens: int) -> dict[str, Matrix]:
    """The weights, always the same."""
    rng = np.random.default_rng(1)

    def noise(*shape: int) -> Matrix:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    even = np.ones(WIDTH, np.float32)
    made = {
        "token_embd.weight": noise(tokens, WIDTH),
        "output_norm.weight": even,
        "output.weight": noise(tokens, WIDTH),
    }
    for layer in range(LAYERS):
        block = {f"attn_{part}": noise(WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
        block |= {"ffn_gate": noise(INNER, WIDTH), "ffn_up": noise(INNER, WIDTH), "ffn_down": noise(WIDTH, INNER)}
        block |= {"attn_norm": even, "ffn_norm": even}
        made |= {f"blk.{layer}.{name}.weight": value for name, value in block.items()}
    return made


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def array(kind: int, items: Sequence[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def keyed(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def described(named: Iterable[tuple[str, Matrix]]) -> tuple[list[bytes], bytes]:
    """What the file says of each tensor, and their data, aligned."""
    told: list[bytes] = []
    data = b""
    for name, value in named:
        shape = tuple(reversed(value.shape))
        told.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data)))
        data += padded(value.tobytes())
    return told, data


def padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)


def write(path: Path) -> None:
    """Write the model."""
    tokens = vocabulary()
    keys: list[Any] = settings(tokens)
    told, data = described(tensors(len(tokens)).items())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(told), len(keys)) + b"".join([*keys, *told])
    path.write_bytes(padded(head) + data)
