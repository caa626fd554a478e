"""Mutation testing: does a test fail if one place of the code is changed? `make mutants`."""
