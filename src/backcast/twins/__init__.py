"""The same algorithms in plain NumPy: dense, slow and readable, to test and to measure against."""
