"""Moves an application from a pipeline's source to its target, step by step."""
