"""A channel file as it is written: its YAML, references, problems, and the base of all models."""
