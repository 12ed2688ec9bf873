"""`python -m evalstone` is the command `evalstone`."""

from evalstone.cli import main

main()
