"""Runs all checks and tests side by side, in lanes: ``python -m tests.lanes``.

A lane is a process of its own with servers of its own. Most of what tests do is wait, for a
session to end or for another node to take over; while one lane waits, another computes. Processes
instead of a plug-in for pytest, since each lane chooses what it starts and with which family of
database servers, and a lane that hangs or is killed harms no other.
"""
