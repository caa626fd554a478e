"""The one error that means: what you gave cannot be used, and this is what could."""

import difflib
from collections.abc import Iterable
from typing import Any

LINES, LINE, WORD = 5, 1500, 200  # lines of a message, characters of a line and of a value in it


class InputError(ValueError):
    """Input refused at the door; the message names the field, what was given and what is allowed.

    The command line turns it into exit code 2. A message of very many lines or very long ones is cut: what was given
    may be anything.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_cut_lines(message))


class TooManyError(InputError):
    """More than a limit allows (`backcast.core.limits`); otherwise nothing is wrong with it."""


def shown(given: Any) -> str:
    """What was given, as Python writes it, but never long."""
    try:
        return shortened(repr(given), WORD)
    except ValueError:  # a whole number of more digits than Python writes
        return f"a number of {given.bit_length():,} bits"


def shortened(text: str, most: int) -> str:
    """A text of so many characters at most; what is left out, in the middle, is counted.

    Examples:
        >>> shortened("a" * 50 + "b" * 50, 20)
        'aaaaaaaaaa […80 characters…] bbbbbbbbbb'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[-half:]}"


def in_a_line(error: BaseException) -> str:
    """What an error says, on one line and never long."""
    return shortened(" ".join(str(error).split()) or type(error).__name__, WORD)


def _cut_lines(message: str) -> str:
    lines = message.split("\n")
    more = [f"and {len(lines) - LINES:,} lines more"] if len(lines) > LINES else []
    return "\n".join([shortened(line, LINE) for line in lines[:LINES]] + more)


def nearest(word: object, words: Iterable[str]) -> str:
    """A hint for a word that is almost one of the words; empty if none is near."""
    close = difflib.get_close_matches(str(word)[:WORD], list(words), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
