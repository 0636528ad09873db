"""A run that writes to a log instead of a database."""
