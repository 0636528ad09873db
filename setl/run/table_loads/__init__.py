"""Loads of whole tables, or of some of their rows, alongside the stream."""
