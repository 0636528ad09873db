"""Whole-table work on Spark: verify."""
