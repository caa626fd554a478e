"""JSON files that end with a checksum of everything before it, so that later changes are detected."""

import hashlib

_LAST = b',\n"sha256": '


def seal(text: str) -> str:
    """Add an entry to a JSON object: the SHA-256 of everything before it.

    Examples:
        >>> print(seal('{"a": 1}'), end="")
        {"a": 1,
        "sha256": "795efb8f8bdc87cd47c4172660bae252ef12fee17b0ef931eb542feb0b83a19a"}
        >>> is_sealed(seal('{"a": 1}').encode()), is_sealed(seal('{"a": 1}').replace("1", "2", 1).encode())
        (True, False)
    """
    body = text.rstrip().removesuffix("}").rstrip()
    return body + _end(body.encode()).decode()


def is_sealed(content: bytes) -> bool:
    """Whether a file is unchanged since `seal`."""
    body, _, _ = content.rpartition(_LAST)
    return content == body + _end(body)


def _end(body: bytes) -> bytes:
    return _LAST + f'"{hashlib.sha256(body).hexdigest()}"}}\n'.encode()
