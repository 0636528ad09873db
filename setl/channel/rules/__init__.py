"""Rules between parts of a channel file, over the parts as they were written."""
