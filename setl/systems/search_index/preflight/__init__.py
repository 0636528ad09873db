"""Checks of a cluster, before a channel starts."""
