"""The files that pages need, and the headers that keep browsers from misusing a page."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import NamedTuple

SECURITY: dict[str, str] = {
    # No inline script or style, nothing of another site, in no frame.
    "Content-Security-Policy": "default-src 'self'; object-src 'none';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""For every answer of the console."""

PAGE: dict[str, str] = {**SECURITY, "Cache-Control": "no-store"}
"""For pages, which are of this moment and of this session."""

FILE: dict[str, str] = {**SECURITY, "Cache-Control": "no-cache"}
"""For files, which change with the release: the browser asks whether they did."""


_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file as it is served.

    Attributes:
        content: its bytes.
        type: its media type.
        tag: changes with the content.
    """

    content: bytes
    type: str
    tag: str


@cache
def files() -> dict[str, File]:
    """Every file by its path below ``static``; read once, since they never change."""
    found: dict[str, File] = {}
    folders = [("", resources.files("setl.node.console") / "static")]
    while folders:
        above, folder = folders.pop()
        for path in folder.iterdir():
            name = f"{above}{path.name}"
            if path.is_dir():
                folders.append((f"{name}/", path))
            elif kind := _TYPES.get(name.rpartition(".")[2]):
                content = path.read_bytes()
                tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
                found[name] = File(content, kind, tag)
    return found
