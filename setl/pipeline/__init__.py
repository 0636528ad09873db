"""One pipeline: the four stages as batches, their outcomes, retries and the Spark session."""
