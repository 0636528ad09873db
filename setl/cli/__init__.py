"""The `setl` command."""
