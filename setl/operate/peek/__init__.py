"""Shows the records of a source to people and programs.

Nothing is ever written or committed: not to the consumer group, not to a checkpoint store, and not
to the source.
"""
