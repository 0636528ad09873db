"""Alarms: what raises them, what is kept of them, and how they reach people."""
