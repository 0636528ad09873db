"""How a pipeline counts binlog files in the versions of its documents.

A version has 63 bits: the generation above, then which file, then the offset in it. Servers number
files up to 2^31, and a file is longer than 4 GiB where one transaction made it so. Files are not
numbered by their names there but counted, so that neither needs more room::

    version = generation << 52 | count of the file << 32 | offset

All three are added, none has a bound of its own:

- A count of 2^20 and more goes on in the bits of the generation. Nothing else is told by these, and
  the next generation begins above (`FileCount.generations`).
- A count is from the file where the generation began, roughly: from a multiple of 2^20. So a server
  with high numbers takes no more room than another. Below 2^20 a count is the number itself.
- A file of 4 GiB and more takes the counts behind its own, too, one for each 4 GiB. Those that
  follow move up by as many. Which files were so long is known when the stream has left them.

Kept with the checkpoint. Crash: whoever reads on from an older checkpoint leaves the same file at
the same offset, and counts alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

FILE_BITS: Final = 20
OFFSET_BITS: Final = 32

# Files of 4 GiB and more that are known apart. Those before are further back than any load begins.
_MOST_LONG: Final = 32
# Files that a target may be ahead of its checkpoint: what is loaded is stored within seconds.
_AHEAD: Final = 1 << 16


class FileCount(NamedTuple):
    """What the files of one generation are counted from, and which of them are long.

    Attributes:
        base: number of the file that counts 0; lower by what long files took that are no longer
            known.
        long: number of each long file, ascending, with how many counts it takes beside its own.
    """

    base: int = 0
    long: tuple[tuple[int, int], ...] = ()

    @classmethod
    def beginning_at(cls, number: int) -> FileCount:
        """That of a generation which begins in the file with this number."""
        return cls(number >> FILE_BITS << FILE_BITS)

    def of(self, number: int) -> int:
        """The count of the file with this number. It grows with the number."""
        taken = sum(counts for long, counts in self.long if long < number)
        return number - self.base + taken

    def past(self, number: int, offset: int) -> FileCount:
        """The same once the stream has left a file, behind this offset of it."""
        taken = offset >> OFFSET_BITS
        known = dict(self.long)
        if taken <= known.get(number, 0):
            return self
        known[number] = taken
        base, long = self.base, sorted(known.items())
        while len(long) > _MOST_LONG:
            base -= long.pop(0)[1]
        return FileCount(base, tuple(long))

    def past_all(self, sizes: Iterable[tuple[int, int]]) -> FileCount:
        """The same once the stream has left files with these numbers and sizes."""
        count = self
        for number, size in sizes:
            count = count.past(number, size)
        return count

    def number(self, count: int, near: int) -> tuple[int, int]:
        """The file whose count this is, or lies in: its number, and how far behind its own count.

        Args:
            count: of which only the lower `FILE_BITS` are known.
            near: number of a file of the same stream; of those that come into question, the one
                that is nearest is meant.
        """
        around = self.of(near)
        half = 1 << FILE_BITS - 1
        count = around + (count - around + half) % (1 << FILE_BITS) - half
        found = count + self.base
        for long, counts in self.long:
            if found <= long:
                break
            if found - long <= counts:
                return long, found - long
            found -= counts
        return found, 0

    def generations(self, number: int) -> int:
        """How many generations on the next one begins, after one that has come to this file."""
        return 1 + (max(0, self.of(number)) + _AHEAD >> FILE_BITS)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        return {"base": self.base, "long": [list(pair) for pair in self.long]}

    @classmethod
    def from_json(cls, value: Any) -> FileCount:
        """Inverse of `to_json`; raises what Python raises for anything else."""
        long = tuple((int(number), int(counts)) for number, counts in value["long"])
        return cls(int(value["base"]), long)


BY_NUMBER: Final = FileCount()
"""Each file counts as its number."""
