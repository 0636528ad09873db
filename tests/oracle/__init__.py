"""What other programs make of a database's changes, recorded for tests to compare with."""
