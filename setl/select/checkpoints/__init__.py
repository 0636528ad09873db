"""Where checkpoints are stored, and which of several counts."""
