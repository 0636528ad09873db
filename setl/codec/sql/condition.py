"""Whether a text can stand between brackets as one SQL condition."""

from __future__ import annotations

from setl.codec.sql.tokens import TokenKind, lexemes

_WRONG = {
    TokenKind.EXECUTED: "holds a comment that a server executes",
    TokenKind.COMMENT: "holds a comment",
}


def condition_problem(text: str) -> str:
    """Why a text is no single condition, as the end of a sentence about it; "" if it may be one.

    A bracket that closes what the text did not open would end the brackets around it, and what
    follows would hold for other rows than it seems to. A server checks all else.
    """
    depth, says = 0, False
    for token in lexemes(text):
        if token.kind in _WRONG:
            return _WRONG[token.kind]
        if not token.closed:
            return f"has a {token.text[0]} without its end"
        if token.word == ";":
            return "holds a ;"
        depth += (token.word == "(") - (token.word == ")")
        if depth < 0:
            return "closes a bracket that it did not open"
        says = says or token.kind is not TokenKind.SIGN
    if depth:
        return "leaves a bracket open"
    return "" if says else "is empty"
