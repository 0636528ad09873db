"""The drills, one file for each family of faults."""
