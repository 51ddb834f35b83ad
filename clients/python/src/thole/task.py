"""One task, as its handler sees it, and how it ends."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

from ._call import Error, Status, number, octets, text


@dataclass(frozen=True)
class Cancelled:
    """Why a task is to end."""

    kind: str  # requested, select_loser, explicit, ended, timeout, terminated, cancelled, lease_lost, shutdown
    reason: str = ""
    grace: float = 0.0  # seconds that were left when the notice was sent


class TaskCancelled(Exception):
    """Raised by a handler in a thread that ends because its task was cancelled."""


class Failure(Exception):
    """Makes a task fail with a type that orchestrations can look at."""

    def __init__(self, text: str, type: str = "", final: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.type = type  # [A-Za-z0-9_.-]{0,64}
        self.final = final  # no other try


@dataclass
class Task:
    """One activity to run. An async handler is cancelled (asyncio.CancelledError) when the task is to end, and finds the reason in
    `cancel`. A handler in a thread looks at `cancel`, waits with `wait`, or calls `check`."""

    activity: str
    instance: str
    execution: int
    activity_id: int  # in the execution
    try_number: int
    attempt: int  # how often this try has been claimed
    input: bytes
    key: str  # idempotency key: the same for every try and every run of this activity
    orchestration: str
    version: int
    details: bytes  # of the last heartbeat before this claim
    timeout: Optional[float]  # seconds until this try's deadline, when it was claimed; None: it has none
    queue: str
    traceparent: str = ""  # W3C Trace Context of the start; empty: it had none
    tracestate: str = ""
    cancel: Optional[Cancelled] = None
    _event: threading.Event = field(default_factory=threading.Event, repr=False)
    _payload_max: int = 0
    _beat: Tuple[int, bytes] = (0, b"")

    def heartbeat(self, details: bytes = b"") -> None:
        """Tells that the task makes progress; the newest details are sent with the next renewal, and are `details` if the task has to
        be run again. From any thread."""
        if len(details) > self._payload_max:
            raise Error(Status.LIMIT, "heartbeat details are larger than the gateway takes")
        self._beat = (self._beat[0] + 1, bytes(details))

    def wait(self, seconds: float) -> bool:
        """Blocks a handler in a thread so long, or until the task is cancelled: True then."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Raises TaskCancelled when the task is cancelled."""
        if self._event.is_set():
            raise TaskCancelled(self.cancel)

    def _fire(self, why: Cancelled) -> bool:
        if self.cancel is not None:
            return False
        self.cancel = why
        self._event.set()
        return True


def read_task(message: Dict[str, Any], payload_max: int) -> Task:
    timeout_ms = number(message, "timeoutMs")
    return Task(
        activity=text(message, "activity"),
        instance=text(message, "instance"),
        execution=number(message, "execution"),
        activity_id=number(message, "activityId"),
        try_number=number(message, "tryNumber"),
        attempt=number(message, "attempt"),
        input=octets(message, "input"),
        key=text(message, "key"),
        orchestration=text(message, "orchestration"),
        version=number(message, "version"),
        details=octets(message, "details"),
        timeout=timeout_ms / 1000 if timeout_ms else None,
        queue=text(message, "queue"),
        traceparent=text(message, "traceparent"),
        tracestate=text(message, "tracestate"),
        _payload_max=payload_max,
    )
