"""What each page shows, and how values become HTML."""
