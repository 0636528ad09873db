"""Which dead letters were put aside under another mapping than the pipeline has now.

A letter holds its row as the mapping made it, for the target and under the key of that time. When
the row changes again, that goes by the present mapping, and does not supersede the letter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setl.errors import SetlError
from setl.load.deadletters.dead_letter import DeadLetter
from setl.model.target_name import target_name

if TYPE_CHECKING:
    from setl.channel.routes.routing import Router


def is_remapped(letter: DeadLetter, router: Router) -> bool:
    """Whether the mapping of a letter's table is another one now.

    Args:
        letter: the letter; one of an earlier release says nothing but its target.
        router: the pipeline's routes as they are now.
    """
    mapped_by = letter.mapped_by
    schema, _, table = letter.source.partition(".")
    if not table or "." in table:  # which table it is is not known; a digest says enough
        return bool(mapped_by) and mapped_by not in {e.mapped_by for e in router.entries}
    try:
        routes = router.route(schema, table)
    except SetlError:
        return True
    if not routes:  # a processor may give its rows another table's name
        return mapped_by not in {e.mapped_by for e in router.entries if e.mapping.processor}
    return not any(
        target_name(route.target) == letter.target and mapped_by in ("", route.mapped_by)
        for route in routes
    )
