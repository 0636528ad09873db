"""Writes to a source that come back through its stream and tell the lag."""
