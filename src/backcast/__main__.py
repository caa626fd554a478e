"""`python -m backcast` is the `backcast` command."""

from backcast.cli import main

if __name__ == "__main__":
    main()
