"""Values in a row: numbers, text, times and JSON."""
