"""What people look at: figures of a study's results."""
