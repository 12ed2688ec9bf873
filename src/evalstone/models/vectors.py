"""The vectors of embedding models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import Any

from evalstone._core.guards import is_array


def vectors_in(data: object, count: int) -> list[list[float]]:
    """The vectors in a reply, in the order of the texts. Raises ValueError if they are not all there."""
    items = data if is_array(data) else []
    if len(items) != count or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{len(items)} of {count} vectors")
    if all("index" in item for item in items):
        by_index = {item["index"]: item for item in items if isinstance(item["index"], int)}
        if sorted(by_index) != list(range(count)):
            raise ValueError("the vectors have wrong indices")
        items = [by_index[index] for index in range(count)]
    return as_vectors([item.get("embedding") for item in items], count)


def as_vectors(value: Any, count: int) -> list[list[float]]:
    """A sequence of sequences, such as an array, as vectors of equal length. Raises ValueError for anything else."""
    try:
        vectors = [[float(number) for number in vector] for vector in value]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a vector is not a list of numbers") from None
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} vectors for {count} texts")
    if len({len(vector) for vector in vectors}) > 1 or not vectors[0]:
        raise ValueError(f"the vectors have different or zero lengths: {', '.join(map(str, map(len, vectors)))}")
    for vector in vectors:
        if not all(map(math.isfinite, vector)) or not any(vector):
            raise ValueError("a vector is all zeros, or has numbers that are not finite")
    return vectors


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, in [-1, 1]; exactly 1 for equal vectors."""
    if first == second:
        return 1.0
    first, second = _scaled(first), _scaled(second)
    lengths = math.sqrt(math.fsum(map(mul, first, first))) * math.sqrt(math.fsum(map(mul, second, second)))
    return max(-1.0, min(1.0, math.fsum(map(mul, first, second)) / lengths))


def _scaled(vector: Sequence[float]) -> list[float]:
    """The vector divided by its largest absolute value, so that no square overflows or underflows."""
    largest = max(map(abs, vector))
    return [number / largest for number in vector]
