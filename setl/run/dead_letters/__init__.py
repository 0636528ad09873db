"""Rows that were set aside: counted, put in doubt by schema changes, loaded again."""
