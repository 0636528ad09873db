"""Load into Elasticsearch."""
