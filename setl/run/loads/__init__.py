"""A load of batches: sorted into work for tasks, and given to a Spark job."""
