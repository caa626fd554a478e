"""Rounding of estimates and intervals, by the width of the interval."""

from math import floor, isnan, log10

MOST_DECIMALS = 15
_LARGEST = 1e15  # beyond it, not all digits before the point are known


def rounded(estimate: float, low: float, high: float) -> tuple[str, ...]:
    """Round an estimate and both ends to two significant digits of the interval's width, without negative zeros.

    If the width is 0 or infinite, or a number is 10¹⁵ or more, all have four significant digits; if the ends are
    unknown, only the estimate is returned.

    Examples:
        >>> rounded(60.066, 52.3, 67.1)
        ('60', '52', '67')
        >>> rounded(60.066, float("nan"), float("nan"))
        ('60.07',)
    """
    width = high - low
    numbers = (estimate,) if isnan(width) else (estimate, low, high)
    plain = 0 < width < float("inf") and max(map(abs, numbers)) < _LARGEST
    style = f"z.{min(MOST_DECIMALS, max(0, 1 - floor(log10(width))))}f" if plain else "z.4g"
    return tuple(f"{number:{style}}" for number in numbers)
