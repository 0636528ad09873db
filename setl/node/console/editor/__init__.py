"""The channel editor: checks, plans and applies a text."""
