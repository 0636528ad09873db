"""Load: sinks, and what keeps a stale leader and an echo out of them."""
