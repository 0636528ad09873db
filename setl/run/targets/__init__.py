"""What a run sees to at its targets: tables created, changed, replaced, or shared with others."""
