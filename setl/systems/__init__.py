"""The systems that setl reads and writes: a room for each; `port` says what a system can offer."""
