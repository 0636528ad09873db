"""Locks: whom a connection waits for, and the one that a change of tables holds."""
