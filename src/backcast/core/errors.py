"""Errors of invalid input, and the wording of their messages."""

import difflib
from collections.abc import Iterable
from typing import Any

LINES, LINE, WORD = 5, 1500, 200  # lines of a message, characters of a line and of a value in it


class InputError(ValueError):
    """Invalid input; the message names the field, what was given and what is allowed.

    The command line turns it into exit code 2. Very long messages are shortened, because input may be anything.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_cut_lines(message))


class TooManyError(InputError):
    """Input that exceeds a limit (`backcast.core.limits`) but is otherwise valid."""


def shown(given: Any) -> str:
    """The repr of a value, shortened."""
    try:
        return shortened(repr(given), WORD)
    except ValueError:  # a whole number of more digits than Python writes
        return f"a number of {given.bit_length():,} bits"


def shortened(text: str, most: int) -> str:
    """Shorten a text in the middle to a number of characters, and say how many were left out.

    Examples:
        >>> shortened("a" * 50 + "b" * 50, 20)
        'aaaaaaaaaa […80 characters…] bbbbbbbbbb'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[-half:]}"


def in_a_line(error: BaseException) -> str:
    """The message of an error on one line, shortened."""
    return shortened(" ".join(str(error).split()) or type(error).__name__, WORD)


def _cut_lines(message: str) -> str:
    lines = message.split("\n")
    more = [f"and {len(lines) - LINES:,} lines more"] if len(lines) > LINES else []
    return "\n".join([shortened(line, LINE) for line in lines[:LINES]] + more)


def nearest(word: object, words: Iterable[str]) -> str:
    """A hint for a word that is similar to a known word; empty if none is."""
    close = difflib.get_close_matches(str(word)[:WORD], list(words), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
