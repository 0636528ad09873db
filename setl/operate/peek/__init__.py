"""Looks at the records of a source, as a person or a tool wants to see them.

Nothing is ever written or committed: not to the consumer group, not to a checkpoint store, and not
to the source.
"""
