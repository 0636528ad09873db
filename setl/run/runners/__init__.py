"""The ways in which Spark runs a load: one for each kind of load."""
