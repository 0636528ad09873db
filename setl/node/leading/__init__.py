"""Standing for election with pipelines, and running those that this node leads."""
