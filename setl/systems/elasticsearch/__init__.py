"""Elasticsearch: the client, the sink, indexes, dead letters, checks and readers."""
