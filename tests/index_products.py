"""The products with the API of a search index of this checkout, for tests of what they share."""

from typing import cast

from setl.channel.fields.endpoints import BUILT_IN_TARGETS
from setl.systems.registry import system_of
from setl.systems.search_index.target_system import IndexTargetSystem


def type_of(form):
    """What stands as `type` of an end in a channel file."""
    (found,) = form.model_fields["type"].annotation.__args__
    return found


_FORMS = {type_of(form): form for form in BUILT_IN_TARGETS if form.holds_documents}
PRODUCTS = [*_FORMS]
"""What stands as `type` in a channel file; a fixture of this name is a server."""


def endpoint_of(type_, url):
    """Where a product is, as its target has it."""
    config = _FORMS[type_].model_validate({"type": type_, "hosts": [url]})
    return cast("IndexTargetSystem", system_of(config))._endpoint
