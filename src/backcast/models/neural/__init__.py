"""Models by networks, forward and backward, as JAX computes them."""
