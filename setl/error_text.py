"""The two forms of an error's text: the whole one, and what of it anybody may read.

Errors quote rows, statements, files and what servers answer. Who is logged in, shows the token or
has access to ZooKeeper reads that; all others read the public form. That is made where the error
is (see `setl.errors.SetlError.text`), of words of setl's own and of names. It is never made by
cutting something out of a text. So a text without a public form is shown to nobody else at all.
"""

from __future__ import annotations

from typing import Any, Self

READ_MORE = "log in at the console, ask with the token, or run `setl status` to read it"

HIDDEN = f"not shown: {READ_MORE}"
"""Stands for a text of which nothing is public."""


class ErrorText(str):
    """The whole text, which carries its public form.

    Whatever is made of it (a part, a sentence around it) is a plain `str` again, and has no public
    form: what forgets this type shows too little, not too much.

    Attributes:
        public: what anybody may read.
    """

    public: str

    def __new__(cls, full: str, public: str) -> Self:
        """Both forms; `public` holds nothing but words of setl's own and names."""
        text = super().__new__(cls, full)
        text.public = public
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.public)

    def __str__(self) -> str:
        """The whole text, without its public form."""
        return "".join(self)


def public(text: str) -> str:
    """What anybody may read of a text; "" only for an empty one."""
    if not text:
        return ""
    return text.public if isinstance(text, ErrorText) else HIDDEN
