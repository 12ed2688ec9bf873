"""`evalstone check`."""

from __future__ import annotations

from typing import Annotated

import evalstone
from evalstone.cli import options
from evalstone.cli.completion import FILE
from evalstone.cli.options import Outputs, front_end
from evalstone.cli.output import formats, present, prints_to_stderr
from evalstone.results.endings import ExitCode


def check(
    data: Annotated[
        str,
        options.argument("DATA", "A file, or what else run takes as DATA.", complete=FILE),
    ],
    map: options.Map = None,
    split: options.Split = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    *,
    outputs: Outputs,
) -> int:
    """Check a dataset before a run.

    Shows how the data are read, all problems at once, and which scorers can score them. Asks no judge and stores
    nothing.
    """
    with prints_to_stderr():
        result = evalstone.check(data, map=map, split=split, encoding=encoding, sheet=sheet)
    view = result.view(front_end(check))
    present(view, formats(view, outputs, result.to_dict()))
    return ExitCode.OK if result.passed else ExitCode.CHECK_FAILED
