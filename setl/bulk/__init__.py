"""Whole tables: chunks, digests of rows, and what a comparison says."""
