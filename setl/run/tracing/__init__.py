"""Traces: when a batch was in which of the four stages, for people who look for where time goes."""
