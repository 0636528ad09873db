"""A topic of change records as a `Source`: positions, runs, groups, the search for a position."""
