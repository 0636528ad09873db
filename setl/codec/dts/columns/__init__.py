"""Rows of DTS records of one table, read by column."""
