"""A binlog as DTS records on Kafka, in order: what others can subscribe to."""
