"""Rows as documents of a search index, whichever product serves it."""
