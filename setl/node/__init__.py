"""One setl process: its session, the pipelines it leads, and its HTTP interface."""
