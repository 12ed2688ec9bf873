"""Attacks on the command line, on loopback alone: `python -m tools.attack`."""
