"""The same algorithms in plain NumPy: dense, slow and readable references for tests and benchmarks."""
