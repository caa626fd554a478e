"""What agents learn: values of states and actions, in a table or linear in features, and how agents act on them."""
