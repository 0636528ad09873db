"""Alarms of a node: who decides and sends, and what is told of them."""
