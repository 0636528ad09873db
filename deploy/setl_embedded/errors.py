"""What goes wrong with the embedded stack."""

from __future__ import annotations


class EmbeddedError(RuntimeError):
    """A program is missing, or a server did not start, answer or stop; the text says which."""
