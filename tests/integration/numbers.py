"""Statements that make a million rows at once, on MySQL and MariaDB alike."""

MILLION = 1_000_000
_DIGITS = "(" + " UNION ALL ".join(f"SELECT {n} AS d" for n in range(10)) + ")"

NUMBERS = "SELECT {} FROM " + ", ".join(f"{_DIGITS} d{i}" for i in range(6))
"""A query of a million rows; its columns are to be filled in."""

NUMBER = " + ".join(f"d{i}.d * {10**i}" for i in range(6))
"""In such a query, the number of the row from 0."""
