"""Where the JVM of this process keeps its files: shuffled rows, unpacked libraries.

Spark removes them when it ends in order. One that was killed leaves them, with rows in them, so
they are in folders that the next start removes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from setl.run.spark.environment import variable
from setl.run.spark.own_folder import OwnFolder, make_own_folder

LOCAL_DIRS: Final = "SPARK_LOCAL_DIRS"
_CONF: Final = "spark.local.dir"
JVM_PREFIX: Final = "setl-jvm-"


@dataclass(frozen=True, slots=True)
class JvmFolders:
    """Folders of a JVM that is about to start.

    Attributes:
        option: argument of the JVM that has it keep its temporary files in a folder of its own.
        local: the folders in place of those that SPARK_LOCAL_DIRS or spark.local.dir names; none
            where neither is given.
        locks: file descriptors that the JVM is to inherit. It lives on for a moment after this
            process, and its folders are in use for as long.
    """

    option: str
    local: tuple[Path, ...]
    locks: tuple[int, ...]

    @contextmanager
    def handed_over(self) -> Generator[None]:
        """Have a JVM that is started inside the block use the folders in place of those given."""
        if not self.local:
            yield
            return
        with variable(LOCAL_DIRS, ",".join(map(str, self.local))):
            yield


def make_jvm_folders(
    given: Mapping[str, str], environment: Mapping[str, str], *, local: bool
) -> JvmFolders:
    """Make them, and remove those of JVMs that are gone.

    Args:
        given: Spark settings of whoever started this process.
        environment: variables of this process.
        local: whether tasks run on this machine only. On clusters the executors may take over
            what is said about Spark's local folders, so that is left as it is.

    Raises:
        OSError: no folder can be made where temporary files are.
    """
    temporary = make_own_folder(Path(tempfile.gettempdir()), JVM_PREFIX)
    path = str(temporary.path).replace("\\", "\\\\").replace('"', '\\"')
    named = environment.get(LOCAL_DIRS) or given.get(_CONF, "") if local else ""
    others = [_in(Path(name.strip())) for name in named.split(",") if name.strip()]
    return JvmFolders(
        option=f'"-Djava.io.tmpdir={path}"',
        local=tuple(folder.path for folder in others),
        locks=tuple(f.lock for f in (temporary, *others) if f.lock is not None),
    )


def _in(parent: Path) -> OwnFolder:
    try:
        parent.mkdir(parents=True, exist_ok=True)  # as Spark does
        return make_own_folder(parent, JVM_PREFIX)
    except OSError:
        # Spark says what is wrong with it, and does without it if there are others.
        return OwnFolder(parent, None)
