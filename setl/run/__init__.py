"""Runs the stages of one pipeline: batches in order, retries, the Spark session."""
