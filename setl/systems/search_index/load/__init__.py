"""Load into an index."""
