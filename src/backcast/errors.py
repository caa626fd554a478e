"""The one error that means: what you gave cannot be used, and this is what could."""


class InputError(ValueError):
    """Input refused at the door; the message names the field, what was given and what is allowed.

    The command line turns it into exit code 2.
    """
