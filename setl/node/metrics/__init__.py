"""The node's figures as Prometheus metrics."""
