"""The log of a relay as a topic of Kafka."""
