"""A DTS subscription as a `Source`: positions, runs, groups and the search for a position."""
