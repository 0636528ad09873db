"""Checks of a Kafka cluster, before a channel starts."""
