"""Row events of one table, read by column."""
