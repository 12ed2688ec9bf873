"""`python -m evalstone` is the command `evalstone`."""

import os
import sys

# `python -m` puts the current folder first, where any file would hide a library. Nothing else is imported before.
try:
    here = os.getcwd()  # noqa: PTH109
except OSError:
    here = None
if not sys.flags.safe_path and sys.path[:1] == [here]:
    del sys.path[0]

from evalstone.cli import main

main()
