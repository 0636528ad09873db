"""Templates of document ids: `id` of a table mapping, such as ``{shop_id}-{id}``.

``{column}`` stands for a key column of the source, ``{schema}`` and ``{table}`` for the source
table's names; two braces in a row are one. Every key column has to be there, or two rows would
be one document; no other column may be, since a delete only tells the key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from setl.errors import ConfigurationError
from setl.model.document import DocumentForm

_TOKEN = re.compile(r"\{\{|\}\}|\{[^{}]+\}|[{}]|[^{}]+")
_TABLE_NAMES = frozenset({"schema", "table"})


class IdTemplateError(ValueError):
    """A template is malformed; the text says how, as the end of a sentence."""


class IdTemplate(NamedTuple):
    """A parsed template.

    Attributes:
        texts: fixed text before, between and after the placeholders.
        names: the placeholders, one fewer.
    """

    texts: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def names_table(self) -> bool:
        """Whether ids differ from table to table."""
        return any(name in _TABLE_NAMES for name in self.names)

    def of_table(self, schema: str, table: str) -> IdTemplate:
        """The template with the names of a source table filled in.

        Raises:
            ConfigurationError: the table's name has a character that ids cannot have there.
        """
        given = {"schema": schema, "table": table}
        texts, names = [self.texts[0]], list[str]()
        for name, text in zip(self.names, self.texts[1:], strict=True):
            if name in given:
                texts[-1] += given[name] + text
            else:
                names.append(name)
                texts.append(text)
        if any("\\" in text for text in texts):
            raise ConfigurationError(
                f"the name of {schema}.{table} has a backslash in it, which no `id` can hold",
                hint="Write the name without it in place of {schema} or {table}",
            )
        return IdTemplate(tuple(texts), tuple(names))


class IdsOf(NamedTuple):
    """What a pipeline says of the ids of an entry's documents, as far as no table is known.

    Attributes:
        entry: see `setl.channel.routes.routed_table.RoutedTable.name`.
        template: its `id` as the file has it; "" for the default.
        of_each_table: whether the entry has a wildcard, so that tables with other keys may have
            their rows in the same index.
        distinguishes_types: whether records say what type a column has. Those that do not tell its
            sign tell the type of each value, which a table that is loaded need not have.
    """

    entry: str = ""
    template: str = ""
    of_each_table: bool = False
    distinguishes_types: bool = True


def parse_id(text: str) -> IdTemplate:
    """Parse a template.

    Raises:
        IdTemplateError: braces do not match, there is no column, or two values would run into
            each other.
    """
    texts, names = [""], list[str]()
    for token in _TOKEN.findall(text):
        if token in {"{", "}"}:
            raise IdTemplateError("has a brace without its other half; write {{ for a brace")
        if token in {"{{", "}}"}:
            texts[-1] += token[0]
        elif token[0] == "{":
            names.append(token[1:-1])
            texts.append("")
        else:
            texts[-1] += token
    if "\\" in "".join(texts):
        raise IdTemplateError("must not have a backslash in it, which marks characters in ids")
    if all(name in _TABLE_NAMES for name in names):
        raise IdTemplateError("must name the key's columns, such as {id}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise IdTemplateError(f"must not name {', '.join(twice)} twice")
    if not all(texts[1:-1]):
        raise IdTemplateError("must have some text between two names, or values would run together")
    return IdTemplate(tuple(texts), tuple(names))


def document_form(
    template: IdTemplate | None, routing: str | None, key: Sequence[str], *, location: str
) -> DocumentForm:
    """How the documents of a table are identified.

    Args:
        template: of the id, the table's names filled in; None joins the key by commas.
        routing: the column by which documents are routed, or None.
        key: names of the columns that identify a row in the source.
        location: where the mapping is, for messages.

    Returns:
        A form for keys of these columns, with the routing column behind them if it is not one
        of them.

    Raises:
        ConfigurationError: the template names another column, or not all of the key.
    """
    indexes = {name.lower(): i for i, name in enumerate(key)}
    form = DocumentForm.of_key(len(key))
    if template is not None:
        named = [name.lower() for name in template.names]
        other = [name for name in template.names if name.lower() not in indexes]
        lacking = [name for name in key if name.lower() not in named]
        if other:
            raise ConfigurationError(
                f"{location}.id names {', '.join(other)}, which is not part of the key: a delete "
                f"would"
                " not find the document",
                hint=f"The key is {', '.join(key)}; name other columns that are unique and never"
                f" null under {location}.key",
            )
        if lacking:
            raise ConfigurationError(
                f"{location}.id lacks the key column {', '.join(lacking)}, so that rows would share"
                " a document",
                hint=f"The key is {', '.join(key)}; name all of it",
            )
        form = DocumentForm(template.texts, tuple(indexes[name] for name in named))
    if routing is None:
        return form
    at = indexes.get(routing.lower(), len(key))
    return DocumentForm(form.texts, form.values, at)
