"""Kernels and their twins in plain NumPy, fed with the same transitions."""

from backcast.drivers.loop import begin, observe


def feed_both(parts, twin, steps, rates_of):
    """Both observe every step (s, a, r, s', ends, first); `rates_of` gives the step sizes of a step by its number."""
    for number, step in enumerate(steps):
        rates, s, first = rates_of(number), step[0], step[5]
        if first:
            begin(parts, rates, s)
            twin.begin(rates, s)
        observe(parts, rates, *step)
        twin.observe(rates, *step)
