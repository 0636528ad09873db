"""A clock that stands where a test sets it."""


class SetClock:
    """See `setl.clock.Clock`.

    Attributes:
        time: what it shows.
        wall: what `now` shows in addition.
    """

    def __init__(self, time: float = 1000.0, wall: float = 0.0) -> None:
        self.time = time
        self.wall = wall

    def monotonic(self) -> float:
        """Counts seconds."""
        return self.time

    def now(self) -> float:
        """Seconds since 1970."""
        return self.time + self.wall
