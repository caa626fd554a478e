"""`python -m backcast` is the `backcast` command."""

from backcast.cli import main

main()
