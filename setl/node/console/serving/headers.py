"""Headers that keep browsers from doing with a page what it is not meant for."""

from __future__ import annotations

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
