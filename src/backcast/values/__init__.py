"""Values of states and actions, in a table or linear in features, and policies that act on them."""
