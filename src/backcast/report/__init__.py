"""Reports: figures and tables of a study's results."""
