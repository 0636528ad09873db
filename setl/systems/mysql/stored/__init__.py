"""What setl stores in a target beside the rows: checkpoints, marks, writers and dead letters."""
