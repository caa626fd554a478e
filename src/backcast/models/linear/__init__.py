"""Models of features, for values that are linear in them."""
