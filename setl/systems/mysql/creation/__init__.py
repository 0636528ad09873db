"""Creates target tables that fit the tables of a source."""
