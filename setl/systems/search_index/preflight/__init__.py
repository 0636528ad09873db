"""Checks of an Elasticsearch cluster, before a channel starts."""
