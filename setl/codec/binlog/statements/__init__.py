"""Statements in the stream, and what they mean."""
