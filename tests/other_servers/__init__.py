"""Servers that tests do not have, by a stub that refuses and answers as they do.

`profiles` lists them, `grammar` has what each refuses, and `stub` speaks the protocol.
"""
