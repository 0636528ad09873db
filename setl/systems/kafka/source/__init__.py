"""A DTS subscription as a `Source`: places, runs, groups and the search for a place."""
