"""Checks of a channel against the real servers; `check.check_channel` runs them all."""
