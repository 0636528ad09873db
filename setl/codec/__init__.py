"""Codecs: what the bytes of a source mean. Headers for the driver, rows for Spark tasks."""
