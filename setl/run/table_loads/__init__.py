"""Loads of whole tables, or of some of their rows, beside the stream."""
