"""Reads the change events that Debezium's connectors write as JSON with schemas."""
