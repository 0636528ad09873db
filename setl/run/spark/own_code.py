"""setl's own code as one file that Spark sends to its workers.

Worker machines have Python and the libraries that setl uses, or get them in an archive. setl
itself always comes from the driver: were it installed there as well, an upgrade that forgot one
machine would decode with old code what new code reads, and nobody would notice.
"""

from __future__ import annotations

import hashlib
import marshal
import pkgutil
import zipfile
from collections.abc import Iterator
from importlib import util
from importlib.abc import InspectLoader
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import setl
from setl import __version__, resources
from setl.errors import FatalError

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can say
_UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552: valid whatever the source beside it is


class _Module(NamedTuple):
    path: str
    source: str
    code: CodeType


def write_own_code(folder: Path) -> Path:
    """Write the package `setl`, as it runs here, into a zip file that Python can import from.

    Its name holds the version and a digest of the source code. Compiled modules are in it
    beside their source: otherwise each worker process would compile all that it imports, for
    seconds. Python ignores those of another version of Python.

    Args:
        folder: where the file goes.

    Returns:
        The file.

    Raises:
        FatalError: the running installation has no source code.
    """
    modules = list(_modules())
    digest = hashlib.sha256()
    for module in modules:
        digest.update(f"{module.path}\0{module.source}\0".encode())
    file = folder / f"setl-{__version__}-{digest.hexdigest()[:12]}.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in modules:
            _add(archive, module.path, module.source.encode())
            _add(archive, module.path + "c", _compiled(module))
        for name, content in resources.everything():
            _add(archive, f"setl/{name}", content)
    return file


def _modules() -> Iterator[_Module]:
    yield _module("setl", is_package=True)
    for found in pkgutil.walk_packages(setl.__path__, "setl."):
        yield _module(found.name, is_package=found.ispkg)


def _module(name: str, *, is_package: bool) -> _Module:
    found = util.find_spec(name)
    loader = found.loader if found else None
    source = loader.get_source(name) if isinstance(loader, InspectLoader) else None
    code = loader.get_code(name) if isinstance(loader, InspectLoader) else None
    if source is None or code is None:
        raise FatalError(
            f"the source code of {name} cannot be read, so it cannot be sent to Spark's workers",
            hint="Install setl in the usual way, from its wheel or a checkout",
        )
    path = name.replace(".", "/")
    return _Module(f"{path}/__init__.py" if is_package else f"{path}.py", source, code)


def _compiled(module: _Module) -> bytes:
    """The content of a .pyc file; the format is that of PEP 552."""
    source_hash = util.source_hash(module.source.encode())
    return util.MAGIC_NUMBER + _UNCHECKED_HASH + source_hash + marshal.dumps(module.code)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)
