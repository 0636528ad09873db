"""Channel files: typed and validated as a whole, and which tables go where. No I/O."""
