"""Rows and tables of a server, read by SELECT: for loads, comparisons and `read: source`."""
