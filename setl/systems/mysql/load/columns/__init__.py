"""Rows that are written by column."""
