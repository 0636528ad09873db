"""Where checkpoints are kept, and which of several counts."""
