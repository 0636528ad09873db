"""A run in a thread of its own, which can be told things from the first moment on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from setl.run.run import PipelineRun


class PipelineThread:
    """The thread of one run after another.

    What a run is told while it is still being built is told it before it begins. All methods may
    be called from any thread, and none waits for the run but `join`.
    """

    def __init__(self, name: str) -> None:
        """No run yet; `name` is that of its thread."""
        self._name = name
        # Guards the run and what it was told before it was there: the watchdog may cancel it
        # while it is being built.
        self._lock = threading.Lock()
        self._run: PipelineRun | None = None
        self._pending_calls: list[Callable[[PipelineRun], None]] = []
        self._thread: threading.Thread | None = None
        self._busy = False

    @property
    def busy(self) -> bool:
        """Whether a run is being built, or works."""
        return self._busy  # a thread takes longer to say that it is alive, and is asked often

    def start(self, work: Callable[[], None]) -> None:
        """Have `work` build a run, hand it to `built`, and run it. Only if none is busy."""

        def working() -> None:
            try:
                work()
            finally:
                self._busy = False

        self._run, self._pending_calls = None, []
        self._thread = threading.Thread(target=working, name=self._name, daemon=True)
        self._busy = True
        try:
            self._thread.start()
        except BaseException:
            self._busy = False
            raise

    def built(self, run: PipelineRun) -> None:
        """The run is there; called by the thread itself."""
        with self._lock:
            self._run = run
            for what in self._pending_calls:
                what(run)

    def join(self, timeout: float) -> None:
        """Wait for the end of the run."""
        if self._thread is not None:
            self._thread.join(timeout)

    # -- what a run can be told ----------------------------------------------------------

    def suspend(self) -> None:
        """See `PipelineRun.suspend`."""
        self._send(_suspend)

    def resume(self) -> None:
        """See `PipelineRun.resume`."""
        self._send(_resume)

    def stop(self) -> None:
        """See `PipelineRun.stop`."""
        self._send(_stop)

    def abort(self) -> None:
        """See `PipelineRun.abort`."""
        self._send(_abort)

    def look_at_loads(self) -> None:
        """See `PipelineRun.look_at_loads`."""
        self._send(_look_at_loads)

    def rollback(self) -> threading.Event | None:
        """See `PipelineRun.rollback`; None if there is no run."""
        with self._lock:
            return self._run.rollback() if self._run is not None and self.busy else None

    def _send(self, what: Callable[[PipelineRun], None]) -> None:
        with self._lock:
            if not self.busy:
                return
            if self._run is not None:
                what(self._run)
            else:
                # In the order of what was told last: a second silence comes after the contact
                # between, and the run must not begin as if that still lasted.
                self._pending_calls = [
                    reported for reported in self._pending_calls if reported is not what
                ]
                self._pending_calls.append(what)


# As values, so that they can be noted for a run that is still being built.


def _suspend(run: PipelineRun) -> None:
    run.suspend()


def _resume(run: PipelineRun) -> None:
    run.resume()


def _stop(run: PipelineRun) -> None:
    run.stop()


def _abort(run: PipelineRun) -> None:
    run.abort()


def _look_at_loads(run: PipelineRun) -> None:
    run.look_at_loads()
