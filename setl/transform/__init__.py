"""Transform: decode, map, compact and evaluate expressions, in Spark tasks."""
