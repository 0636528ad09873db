"""Where a pipeline's checkpoint is stored, when, and where a leadership begins."""
