"""Types of the parts of py4j that are used here."""
