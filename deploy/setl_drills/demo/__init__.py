"""The demo: two MySQL sites and a search index in step, through the death of the leader."""
