"""What a tool returned: an object, or its JSON text, since OpenAI's messages of tools have nothing but text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalstone._core.files import check_containers
from evalstone._core.guards import is_mapping


def returned_object(result: Any) -> Mapping[str, Any]:
    """The object that a tool returned, or that its text is as JSON; empty for anything else."""
    if isinstance(result, str) and result.lstrip()[:1] == "{":
        check_containers(result)
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return {}
    return result if is_mapping(result) else {}


def returned_error(result: Any) -> Any:
    """The `error` of the object that a tool returned, if it isn't empty; otherwise None."""
    if isinstance(result, str) and '"error"' not in result:  # as nearly all are
        return None
    return returned_object(result).get("error") or None


def is_only_error(result: Any) -> bool:
    """Whether a tool returned an error and nothing else, by which it says that the call failed."""
    return returned_error(result) is not None and len(returned_object(result)) == 1
