"""Drivers of Algorithm 1: compiled over many seeds (`run`), or step by step in an environment (`train`)."""
