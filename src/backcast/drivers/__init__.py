"""Algorithm 1 at work: compiled over many seeds (`run`), or step by step in an environment (`train`)."""
