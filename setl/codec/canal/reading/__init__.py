"""Reads the flat messages that Canal writes as JSON."""
