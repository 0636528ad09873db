"""The parts of a channel file: one model for each."""
