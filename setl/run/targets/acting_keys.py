"""The foreign keys whose actions a pipeline carries out, since its source does not log them.

InnoDB deletes and changes child rows inside the engine: of ``ON DELETE CASCADE`` a binlog has the
parent's row alone. A replica has the same foreign keys and lets its own engine act. So does setl:
what the keys of the target's tables say is what the source's said at this position of the stream,
since schema changes are replicated in its order (I26). Of keys that the target had before, the
source is asked whether it has them, too; what was found is kept with the checkpoint.

Rows are compacted and written table by table, in many tasks, so the moment of an action is made
one: see `setl.select.key_turns` for where batches end, and `setl.systems.mysql.load.key_actions`
for what is done at the target. The driver looks at fronts of records only, except at updates of
parents whose keys act on updates: their images tell whether a key changes at all.

A row that a load has read may be ahead of an action that the stream still brings. A child row that
came later is removed by it, and comes again in the stream, whole. What lies further down does not:
a child of that child has no change of its own in the stream. So where a chain of keys acts, or a
key changes, while tables are being loaded, the load ends with a reason against it (see `doubtful`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from setl.codec.row_codec import RowCodec, single_entries
from setl.errors import FatalError, TransientError
from setl.extract.extractor import RoutedRows
from setl.load.key_actions import ActingKey, KeyActions, KeysFound
from setl.model.change import ABSENT, Op, Row
from setl.model.checkpoint import Checkpoint, KnownTargets
from setl.model.entry import Entry
from setl.model.key_action import KeyAction, KeyMove, Name
from setl.model.schema import RowSchema
from setl.select.key_turns import Turn

_GONE = (
    "The source had it no more when the pipeline began, and rows that it changed before then may be"
    " wrong at the target. Start the pipeline, and load the tables of the statement again with"
    " `setl load --replace`"
)


class _Related:
    """What the reading thread needs to know of keys; never changed once it is made."""

    def __init__(self, acting: Sequence[ActingKey]) -> None:
        self.tables = frozenset(name for key in acting for name in (key.parent, key.child))
        self.schemas = frozenset(schema for schema, _ in self.tables)
        self.removing = frozenset(key.parent for key in acting if key.action.on_delete)
        self.moving: dict[Name, set[str]] = {}
        for key in acting:
            if key.action.on_update:
                columns = self.moving.setdefault(key.parent, set())
                columns.update(name.lower() for name in key.action.parent_columns)

    def within(self, other: _Related) -> bool:
        """Whether batches that are cut by the other one are cut well enough by this one."""
        return (
            self.tables <= other.tables
            and self.removing <= other.removing
            and all(own <= other.moving.get(name, set()) for name, own in self.moving.items())
        )


class ActingKeys:
    """The keys of one leadership. `KeyTurns` for the reading thread, all else for the run's."""

    def __init__(self, codec: RowCodec, keys: KeyActions | None, *, passes: bool) -> None:
        """Nobody is asked yet.

        Args:
            codec: of the source's rows.
            keys: finds them; None if there are none.
            passes: whether schema changes are replicated.
        """
        self._codec = codec
        self._keys = keys
        self._passes = passes
        self._keys_found: KeysFound | None = None
        self._related = _Related(())
        self._sure = False

    # -- for the reading thread -------------------------------------------------------------

    @property
    def tables(self) -> frozenset[Name]:
        """See `KeyTurns.tables`."""
        return self._related.tables

    def orders(self, schema: str) -> bool:
        """Whether rows of a schema's tables have to come in the order of the stream."""
        return schema in self._related.schemas

    def divided(self, entry: Entry) -> Sequence[tuple[Entry, Turn]]:
        """See `KeyTurns.divided`."""
        related, name = self._related, (entry.schema, entry.table)
        reported = [
            (self._turn(one, name, related), one) for one in single_entries(self._codec, entry)
        ]
        turns = {turn for turn, _ in reported}
        if len(turns) == 1 and (len(reported) == 1 or Turn.MOVES not in turns):
            return [(entry, turns.pop())]
        parts: list[tuple[Entry, Turn]] = []
        for turn, group in groupby(reported, key=itemgetter(0)):
            together = [one for _, one in group]
            if turn is Turn.MOVES or len(together) == 1:
                parts += [(one, turn) for one in together]
            else:
                parts.append((self._joined(together), turn))
        return parts

    def _turn(self, entry: Entry, name: Name, related: _Related) -> Turn:
        reported = self._codec.operation(entry.payload)
        if reported is None:
            return Turn.CHANGES
        op, checked = reported
        if op is Op.DELETE:
            return Turn.ACTS if checked and name in related.removing else Turn.REMOVES
        if op is Op.UPDATE and checked and name in related.moving:
            columns = related.moving[name]
            if any(True for _ in self._changed(entry, columns)):
                return Turn.MOVES
        return Turn.CHANGES

    def _joined(self, parts: Sequence[Entry]) -> Entry:
        payload = self._codec.join([(one.position.offset, one.payload) for one in parts])
        return parts[-1]._replace(rows=sum(one.rows for one in parts), payload=payload)

    def _changed(
        self, entry: Entry, columns: Collection[str]
    ) -> Iterator[tuple[RowSchema, Row, Row]]:
        """The images of rows of which one of these columns is another one afterwards."""
        schema, _, images = self._codec.decode(entry.payload, entry.context)
        indexes = _indexes(schema, columns)
        for before, after in images:
            if before is None or after is None:
                continue
            if any(after[i] is not ABSENT and after[i] != before[i] for i in indexes):
                yield schema, before, after

    # -- for the run's thread ---------------------------------------------------------------

    @property
    def _acting(self) -> Sequence[ActingKey]:
        return () if self._keys_found is None else self._keys_found.acting

    @property
    def known(self) -> KnownTargets:
        """What the checkpoint is to keep: the keys that act, see `KeyAction.id`."""
        return tuple(key.action.id for key in self._acting)

    @property
    def actions(self) -> tuple[KeyAction, ...]:
        """The keys that act."""
        return tuple(key.action for key in self._acting)

    def begin(self, checkpoint: Checkpoint) -> None:
        """A leadership begins, or goes on after an error, and reads what it read before.

        Raises:
            TransientError: batches are cut by other keys than those that are there, and have to
                be read again.
            FatalError, ConfigurationError, SetlError: as `after_changes`.
        """
        if self._keys is None or self._sure:
            return
        if self._keys_found is None:
            self._take(self._keys.find(checkpoint.targets if self._passes else ()))
        elif self.after_changes():
            raise TransientError("foreign keys with actions have come: what follows is read again")

    def after_changes(self) -> bool:
        """Schema changes were replicated, or not; returns whether batches are to be cut otherwise.

        Raises:
            FatalError: a key is gone that acted earlier, and nobody knew.
            ConfigurationError, SetlError: as `KeyActions.find`.
        """
        if self._keys is None:
            return False
        self._sure = False  # whatever happens, until it is known
        before, related = self._keys_found or KeysFound(), self._related
        # What has come since is of the stream, whatever the source has by now.
        through_stream = (self.known, before.all) if self._passes else ((), None)
        found = self._keys.find(*through_stream)
        self._take(found)
        gone = sorted(before.lacking - found.all) if self._passes else ()
        for child, name in gone[:1]:
            raise FatalError(
                f"the foreign key {name} of the target's table {child} is gone, whose actions were"
                " not carried out",
                hint=_GONE,
                table=child,
            )
        return not self._related.within(related)

    def _take(self, keys: KeysFound) -> None:
        self._keys_found = keys
        self._related = _Related(keys.acting)
        self._sure = True

    def moves(self, rows: Sequence[RoutedRows]) -> tuple[KeyMove, ...]:
        """The changes of referenced columns among rows that are to be applied, in order.

        Raises:
            DataError: a row cannot be decoded.
        """
        moving, moves = self._related.moving, list[KeyMove]()
        targets = {key.parent: key.action.parent for key in self._acting}
        for entry, _ in rows:
            name = (entry.schema, entry.table)
            if name not in moving:
                continue
            for one in single_entries(self._codec, entry):
                if self._codec.operation(one.payload) != (Op.UPDATE, True):
                    continue
                for schema, before, after in self._changed(one, moving[name]):
                    moves.append(_move(targets[name], schema, before, after, moving[name]))
        return tuple(moves)

    def doubtful(self, rows: Sequence[RoutedRows]) -> tuple[str, ...]:
        """Tables that may lack rows, or have too many, if actions run on rows that are ahead.

        As ``schema.table`` of the source; those further down than the children of rows that are
        deleted, and all of those below a key that changes.

        Args:
            rows: of a batch that acts.
        """
        tables: set[Name] = set()
        for entry, _ in rows:
            name = (entry.schema, entry.table)
            reported = self._codec.operation(next(single_entries(self._codec, entry)).payload)
            if reported == (Op.DELETE, True):
                tables |= self._below(self._children(name))
            elif reported is not None and reported[0] is Op.UPDATE and name in self._related.moving:
                tables |= self._below({name})
        return tuple(sorted(".".join(name) for name in tables))

    def _children(self, parent: Name) -> set[Name]:
        return {key.child for key in self._acting if key.parent == parent}

    def _below(self, tables: Collection[Name]) -> set[Name]:
        below = set[Name]()
        left = set(tables)
        while left:
            left = {child for name in left for child in self._children(name)} - below
            below |= left
        return below


def _indexes(schema: RowSchema, columns: Collection[str]) -> list[int]:
    return [i for i, column in enumerate(schema.columns) if column.name.lower() in columns]


def _move(
    target: Name, schema: RowSchema, before: Row, after: Row, columns: Collection[str]
) -> KeyMove:
    indexes = _indexes(schema, columns)
    return KeyMove(
        target,
        tuple(schema.columns[i] for i in indexes),
        tuple(before[i] for i in indexes),
        tuple(before[i] if after[i] is ABSENT else after[i] for i in indexes),
    )
