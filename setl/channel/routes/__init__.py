"""Which table goes where, compiled from the mappings of a pipeline."""
