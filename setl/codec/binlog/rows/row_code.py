"""Generates the Python code that reads the rows of one table.

Going over a table's columns with a function for each of them costs a call a value. Here the
columns are written out one behind the other. Fixed sizes are added up, so that columns nobody
asks for cost one addition in all; numbers that stand together are read together; and a NULL is
asked about only in rows that have one. An image of the table (id BIGINT, n INT, name VARCHAR(60),
price DECIMAL(12,2), note VARCHAR(20) NULL) of which the id alone is wanted is gone over by::

    nulls = data[at] & 31
    if not nulls:
        (v0,) = pack0(data, at + 1)
        at += 14 + data[at + 13]
        at += 7 + data[at + 6]
    else:
        ...

No text of a stream gets into it: a column's part is made of its type and its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from string import Template
from struct import Struct
from typing import Any, Final, NamedTuple

from setl.codec.binlog.event import HEADER_BYTES, EventType
from setl.codec.binlog.tables.table_map import WireColumn, value_bytes
from setl.codec.binlog.values.value_code import PACKED, value_code
from setl.codec.binlog.values.value_number import Reader
from setl.model.change import Value

# Of an event's header: its kind, its size, and where in the file it ends.
_FRONT: Final = Struct("<4xB4xII")


class ColumnCode(NamedTuple):
    """What reading one column takes.

    Attributes:
        wire: its layout.
        unsigned: whether it is an integer without a sign.
        nullable: whether it may be NULL.
        read: the function that reads its values.
        convert: of values with their length in front of them: what their bytes go through, None
            if they stay bytes; of others None.
    """

    wire: WireColumn
    unsigned: bool
    nullable: bool
    read: Reader
    convert: Callable[[bytes], Value] | None = None

    @property
    def letter(self) -> str:
        """Its letter in a format of `struct`, "" if it has none."""
        return PACKED.get(self.wire.type, ("", ""))[self.unsigned]


class _Image:
    """The text that goes over one image; ``at`` stands in front of it, then behind it."""

    def __init__(self, columns: Sequence[ColumnCode], wanted: Collection[int]) -> None:
        """Nothing is written yet.

        Args:
            columns: all columns of the image.
            wanted: indexes of those that are read; column 3 into ``v3``.
        """
        self._columns = columns
        self._wanted = wanted
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = ""
        self._ahead = 0  # bytes that were gone over since ``at`` was set

    def lines(self) -> list[str]:
        """The statements; they use what is in `names` then."""
        columns = self._columns
        width = (len(columns) + 7) // 8
        every = (1 << len(columns)) - 1
        never = sum(1 << i for i, column in enumerate(columns) if not column.nullable)
        bitmap = "data[at]"
        if width > 1:
            bitmap = f'int.from_bytes(data[at:at + {width}], "little")'
        # Bits behind the last column's mean nothing.
        self._write(f"nulls = {bitmap}" + (f" & {every}" if len(columns) % 8 else ""))
        self._write("if not nulls:")
        self._walk(width, tested=False)
        self._write("else:")
        if never:
            self._write(f"    if nulls & {never}: raise ValueError")
        self._walk(width, tested=True)
        return self._lines

    def _walk(self, width: int, *, tested: bool) -> None:
        self._indent, self._ahead = "    ", width
        packed: list[int] = []
        for i, column in enumerate(self._columns):
            may_be_null = tested and column.nullable
            if may_be_null or not (column.letter and i in self._wanted):
                self._unpack(packed)
            if may_be_null:
                self._arrive()
                self._write(f"if nulls & {1 << i}:")
                self._write(f"    v{i} = None" if i in self._wanted else "    pass")
                self._write("else:")
                self._indent += "    "
                self._value(i, packed)
                self._unpack(packed)
                self._arrive()
                self._indent = "    "
            else:
                self._value(i, packed)
        self._unpack(packed)
        self._arrive()
        self._indent = ""

    def _value(self, i: int, packed: list[int]) -> None:
        column = self._columns[i]
        size = value_bytes(column.wire)
        if size < 0:
            self._piece(i, -size)
            return
        if i in self._wanted:
            if column.letter:
                packed.append(i)
            else:
                self._fixed(i, size)
        self._ahead += size

    def _unpack(self, packed: list[int]) -> None:
        """Read numbers that stand together, the last of them just gone over."""
        if not packed:
            return
        layout = Struct("<" + "".join(self._columns[i].letter for i in packed))
        name = f"pack_{layout.format[1:]}"
        self.names[name] = layout.unpack_from
        values = ", ".join(f"v{i}" for i in packed)
        self._write(f"({values},) = {name}(data, {self._offset(-layout.size)})")
        packed.clear()

    def _fixed(self, i: int, size: int) -> None:
        code = value_code(self._columns[i].wire, size)
        self.names.update(code.names)
        self.names[f"read{i}"] = self._columns[i].read
        where = {"value": f"v{i}", "raw": "raw", "read": f"read{i}", "at": self._offset()}
        for line in code.lines:
            self._write(Template(line).substitute(where))

    def _piece(self, i: int, width: int) -> None:
        """A value with its length in front of it."""
        first = self._offset()
        length = f"data[{first}]"
        if width == 2:
            length = f"(data[{first}] | data[{self._offset(1)}] << 8)"
        elif width > 2:
            length = f'int.from_bytes(data[{first}:{self._offset(width)}], "little")'
        if i not in self._wanted:
            self._write(f"at += {self._ahead + width} + {length}")
        else:
            convert = self._columns[i].convert
            self._write(f"start = {self._offset(width)}")
            self._write(f"at = start + {length}")
            if convert is None:
                self._write(f"v{i} = data[start:at]")
            else:
                self.names[f"convert{i}"] = convert
                self._write(f"v{i} = convert{i}(data[start:at])")
        self._ahead = 0

    def _offset(self, further: int = 0) -> str:
        ahead = self._ahead + further
        return f"at + {ahead}" if ahead else "at"

    def _arrive(self) -> None:
        if self._ahead:
            self._write(f"at += {self._ahead}")
            self._ahead = 0

    def _write(self, line: str) -> None:
        self._lines.append(self._indent + line)


_IMAGES: Final = """\
def images(data, at, end):
    rows = []
    add = rows.append
    while at < end:
{whole}
        add(({row}))
    if at != end:
        raise ValueError
    return rows
"""

_IMAGE: Final = """\
def image(data, at):
{whole}
    return ({row})
"""

# Begins of an event's body: where the number of columns stands, and what has to stand there for
# images to be whole.
_SCAN: Final = """\
def scan(data, at, trailer):
    keys, rows, ends = [], [], []
    add_key, add_row, add_end = keys.append, rows.append, ends.append
    total = len(data)
    reached, taken, position = at, 0, 0
    try:
        while at < total:
            kind, size, position = front(data, at)
            end = at + size
            stop = end - trailer
            at += {body}
            if kind >= {second}:
                at += data[at] | data[at + 1] << 8
            if kind == {update_1} or kind == {update_2}:
                if data[at:at + {pair_size}] not in pairs:
                    break
                at += {pair_size}
                while at < stop:
{before_key}
                    before = {key}
                    place = at
{after_key}
                    after = {key}
                    if before != after:
                        stop = -1
                        break
                    add_key(after)
                    add_row(place)
                    add_end(position)
            elif kind == {insert_1} or kind == {insert_2}:
                if data[at:at + {one_size}] not in ones:
                    break
                at += {one_size}
                while at < stop:
{whole}
                    add_key({key})
                    add_row(({row}))
                    add_end(position)
            elif kind == {delete_1} or kind == {delete_2}:
                if data[at:at + {one_size}] not in ones:
                    break
                at += {one_size}
                while at < stop:
{before_key}
                    add_key({key})
                    add_row(None)
                    add_end(position)
            else:
                break
            if at != stop or end > total or len(keys) == taken:
                break
            at = reached = end
            taken = len(keys)
    except damaged:
        pass
    if reached < total:
        del keys[taken:], rows[taken:], ends[taken:]
    return keys, rows, ends, reached, position
"""


def images_text(columns: Sequence[ColumnCode]) -> tuple[str, dict[str, Any]]:
    """Functions ``images`` and ``image``, see `setl.codec.binlog.rows.row_scanner.TableRows`.

    Returns:
        Their text, and what it names.
    """
    everything = range(len(columns))
    image = _Image(columns, everything)
    lines = image.lines()
    row = _tuple(everything)
    text = _IMAGES.format(whole=_block(lines, 8), row=row) + _IMAGE.format(
        whole=_block(lines, 4), row=row
    )
    return text, image.names


def scan_text(columns: Sequence[ColumnCode], key: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The function ``scan``, see `setl.codec.binlog.rows.row_scanner.TableRows`.

    Returns:
        Its text, and what it names.
    """
    everything = range(len(columns))
    whole, alone = _Image(columns, everything), _Image(columns, frozenset(key))
    whole_lines, key_lines = whole.lines(), alone.lines()
    width = (len(columns) + 7) // 8
    count = _packed(len(columns))
    # Bits behind the last column's mean nothing: MariaDB clears them, MySQL 9.7 sets them.
    bitmaps = (((1 << len(columns)) - 1).to_bytes(width, "little"), b"\xff" * width)
    text = _SCAN.format(
        body=HEADER_BYTES + 8,
        second=int(EventType.WRITE_ROWS),
        update_1=int(EventType.UPDATE_ROWS_V1),
        update_2=int(EventType.UPDATE_ROWS),
        insert_1=int(EventType.WRITE_ROWS_V1),
        insert_2=int(EventType.WRITE_ROWS),
        delete_1=int(EventType.DELETE_ROWS_V1),
        delete_2=int(EventType.DELETE_ROWS),
        one_size=len(count) + width,
        pair_size=len(count) + 2 * width,
        before_key=_block(key_lines, 20),
        after_key=_block(key_lines, 20),
        whole=_block(whole_lines, 20),
        key=f"v{key[0]}" if len(key) == 1 else f"({_tuple(key)})",
        row=_tuple(everything),
    )
    names = {
        **whole.names,
        **alone.names,
        "ones": tuple(count + bitmap for bitmap in bitmaps),
        "pairs": tuple(count + bitmap + bitmap for bitmap in bitmaps),
        "front": _FRONT.unpack_from,
    }
    return text, names


def _tuple(indexes: Sequence[int]) -> str:
    return "".join(f"v{i}, " for i in indexes).rstrip()


def _block(lines: Sequence[str], indent: int) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _packed(count: int) -> bytes:
    """A length-encoded integer, see `packed_integer`; a table has 4,096 columns at most."""
    return bytes([count]) if count < 251 else b"\xfc" + count.to_bytes(2, "little")
