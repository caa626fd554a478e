"""The one error that means: what you gave cannot be used, and this is what could."""

import difflib
from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """Input refused at the door; the message names the field, what was given and what is allowed.

    The command line turns it into exit code 2.
    """


def nearest(word: Any, words: Iterable[str]) -> str:
    """A hint for a word that is almost one of the words; empty if none is near."""
    close = difflib.get_close_matches(str(word), list(words), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
