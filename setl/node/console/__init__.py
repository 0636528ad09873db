"""The console: pages that every node serves to people, beside its HTTP interface for programs."""
