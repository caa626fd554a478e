"""The command line: `backcast --help`."""

import io
import signal
import sys
from typing import Annotated, Any

import typer

from backcast import __version__
from backcast.cli.common import Terminated, end, in_words, stop
from backcast.cli.result_commands import best, claims, export, report, verify
from backcast.cli.study_commands import reproduce, sweep
from backcast.cli.tool_commands import bench, cite, doctor, lab, list_
from backcast.core.errors import InputError

UsageError: Any = typer.BadParameter.__base__  # its module moved between versions of typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
for command in (list_, reproduce, sweep, claims, report, best, export, verify, bench, lab, doctor, cite):
    summary = (command.__doc__ or "").partition("\n")[0]  # whole; a default summary is cut on narrow terminals
    app.command(command.__name__.rstrip("_"), short_help=summary)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"backcast {__version__}")
        raise typer.Exit


@app.callback()
def backcast(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Credit assignment by planning, forward and backward.

    Example: backcast reproduce --seeds 20 --out results
    """


def main() -> None:
    """Entry point of the `backcast` command.

    Exit codes: 0 done, 2 bad input, 130 interrupted (143: terminated), 1 anything else.
    """
    signal.signal(signal.SIGTERM, end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # formulas have letters that not every terminal can show
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        error.show()
        raise SystemExit(2) from None
    except InputError as error:
        stop(2, str(error))
    except Terminated:
        stop(143, "stopped")
    except (KeyboardInterrupt, typer.Abort):
        stop(130, "stopped")
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(1) from None
    except OSError as error:
        stop(1, in_words(error))
    else:
        raise SystemExit(code or 0)
