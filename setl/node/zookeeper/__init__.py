"""Looks at ZooKeeper's servers and certificates; sessions are `arbiter.session`."""
