"""Writes rows of a binlog as change events of Debezium."""
