"""Writes rows of a binlog as flat messages of Canal."""
