"""Select: sources, batches with ack and rollback, and where checkpoints are stored."""
