"""Planning a table of a target that fits a table of a source."""
