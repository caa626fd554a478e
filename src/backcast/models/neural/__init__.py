"""Forward and backward models computed by networks, in JAX."""
