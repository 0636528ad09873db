"""Kafka: one way to connect, where its errors get their kind, and looking around in a partition."""
