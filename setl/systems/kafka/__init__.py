"""Kafka: DTS subscriptions to read, the topics of relays, committed offsets, and checks."""
