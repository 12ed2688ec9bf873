"""Samples of a file or a ledger as a sequence: they are read again when they are needed, so they take little memory."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

from evalstone._core.files import file_lines, file_values
from evalstone.datasets.blocks import SpooledSamples
from evalstone.datasets.stored import sample_of
from evalstone.errors import ConfigError, DataError
from evalstone.types import Sample

_IN_MEMORY = 1_000
"""The number of samples that an index keeps in memory."""


class ReadSamples(Sequence[Sample]):
    """Samples that each iteration reads again.

    Indexing reads them once, into a temporary file if there are many. From then on, iterations read that, so that an
    index and an iteration agree whatever becomes of the source. Raises what reading the source raises.
    """

    @abstractmethod
    def read(self) -> Iterator[Sample]:
        """Read the samples from their source."""

    @cached_property
    def _indexed(self) -> Sequence[Sample]:
        samples = self.read()
        first = tuple(itertools.islice(samples, _IN_MEMORY))
        return first if len(first) < _IN_MEMORY else SpooledSamples.of(itertools.chain(first, samples))

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._indexed) if "_indexed" in vars(self) else self.read()

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None  # without reading all of them

    def __len__(self) -> int:
        return len(self._indexed)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        return self._indexed[index]


@dataclass(frozen=True)
class StoredSamples(ReadSamples):
    """The samples of a `samples.jsonl`.

    Reading raises DataError, with file and line, for an invalid sample, and ConfigError if the file can't be opened.
    """

    path: Path

    def read(self) -> Iterator[Sample]:
        try:
            for place, line in file_values(self.path):
                try:
                    sample = sample_of(line)
                except (ValueError, TypeError, AttributeError, RecursionError, ConfigError) as error:
                    raise DataError(f"{place}: ", error) from None
                yield sample
        except OSError as error:
            raise self._unreadable(error) from None

    def __len__(self) -> int:
        if "_indexed" in vars(self):
            return super().__len__()
        try:
            return sum(1 for _ in file_lines(self.path))
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> ConfigError:
        return ConfigError(f"{self.path} cannot be read: {error.strerror}")
