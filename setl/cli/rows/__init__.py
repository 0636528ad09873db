"""Commands about rows: load, verify, repair, dead letters, conflicts."""
