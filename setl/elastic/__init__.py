"""Elasticsearch: one way to make a client, one place where its errors get their kind."""
