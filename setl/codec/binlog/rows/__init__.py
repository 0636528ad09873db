"""Row events: which tables they are of, how they are joined, and what their rows hold."""
