"""Where it is kept how far standing verification is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Invalid, NotFound
from arbiter.values import PipelineId
from setl.errors import ConfigurationError, DataError, FencedError, TransientError
from setl.model.standing import Verification

_Answer = TypeVar("_Answer")
_ATTEMPTS = 5


class StoredVerification:
    """How far standing verification of a pipeline is, stored by the arbiter; commands read it, too.

    Order: `load`, then `store` again and again, by one thread. Idempotence: the same may be
    stored twice. Crash: what was compared after the last `store` is compared again.
    """

    def __init__(self, arbiter: Arbiter, pipeline: PipelineId) -> None:
        """Nothing is read yet."""
        self._arbiter = arbiter
        self._pipeline = pipeline
        self._revision: int | None = None

    def load(self) -> Verification:
        """What is stored; nothing done if nothing is, or if it cannot be read.

        Raises:
            TransientError: nobody answers now.
        """
        found = self._asked(lambda: self._arbiter.verifications.read(self._pipeline))
        value, self._revision = found or ({}, None)
        return _read(value)

    def store(self, state: Verification) -> None:
        """Store it in place of what is stored.

        Raises:
            FencedError: a newer leadership has stored something.
            TransientError: it may or may not be stored.
            DataError: it is too large.
            ConfigurationError: the channel is gone.
        """
        value = state.to_json()
        for _ in range(_ATTEMPTS):
            try:
                self._revision = self._asked(lambda: self._write(value))
            except Conflict:
                # Somebody else has written, or a write of ours whose answer was lost.
                if self.load().epoch > state.epoch:
                    raise FencedError(
                        "a newer leadership verifies", pipeline=str(self._pipeline)
                    ) from None
                continue
            return
        raise TransientError(
            "what standing verification keeps is being changed all the time",
            pipeline=str(self._pipeline),
        )

    def _write(self, value: dict[str, Any]) -> int:
        return self._arbiter.verifications.store(self._pipeline, value, self._revision)

    def _asked(self, question: Callable[[], _Answer]) -> _Answer:
        try:
            return question()
        except Conflict:
            raise
        except ArbiterError as error:
            text, where = f"ZooKeeper: {error}", str(self._pipeline)
            if isinstance(error, NotFound):
                raise ConfigurationError(text, pipeline=where) from error
            if isinstance(error, Invalid):
                raise DataError(text, pipeline=where) from error
            raise TransientError(text, pipeline=where) from error


def _read(value: dict[str, Any]) -> Verification:
    """What was kept; nothing done for what another release wrote in another form."""
    try:
        return Verification.from_json(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Verification()
