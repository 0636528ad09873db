"""Rows that both sites write: finding conflicts, deciding them, and agreeing on the result."""
