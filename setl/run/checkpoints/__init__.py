"""Where a pipeline's checkpoint is kept, when, and where a leadership begins."""
