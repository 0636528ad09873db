"""SQL text: its tokens, what a statement is, and which tables it names."""
