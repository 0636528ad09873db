"""Values of columns: as Python has them, as text of statements, and as conditions on rows."""
