"""Thread-safe use of Python's parser.

Up to Python 3.12, the depth of the syntax tree under construction is counted per process. If garbage collection lets
another thread run meanwhile and that thread parses too, both may fail with SystemError.
"""

from __future__ import annotations

import ast
import os
import threading

_lock = threading.RLock()  # reentrant, because a finalizer may parse during parsing


def _reset_after_fork() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def parse_module(code: str) -> ast.Module:
    """The syntax tree of a module. Raises what `ast.parse` raises."""
    with _lock:
        return ast.parse(code)


def parse_expression(code: str) -> ast.expr:
    """The syntax tree of an expression. Raises what `ast.parse` raises."""
    with _lock:
        return ast.parse(code, mode="eval").body
