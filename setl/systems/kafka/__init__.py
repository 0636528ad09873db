"""Kafka: topics of change records to read, the topics of relays, committed offsets, and checks."""
