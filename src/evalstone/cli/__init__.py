"""The command line."""

from evalstone.cli.app import main

__all__ = ["main"]
