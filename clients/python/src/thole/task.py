"""One task, as its handler sees it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import re
import threading
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Optional, Tuple

from ._call import Error, Message, Status, encoded

log = logging.getLogger("thole")
FAILURE_TEXT = 4096


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


LATER = object()  # returned by a handler whose task is completed later, by who has its token


def json_handler(function: Any) -> Any:
    """Makes a handler of one that takes the task and a value, and returns one. An input that is no JSON is a final failure of type
    bad_input."""

    def read(task: "Task") -> Any:
        try:
            return json.loads(task.input)
        except (ValueError, RecursionError) as error:
            raise Failure(f"the input cannot be read: {error}", "bad_input", final=True) from None

    def write(value: Any) -> Any:
        return value if value is LATER else json.dumps(value, ensure_ascii=False).encode()

    async def on_loop(task: "Task") -> Any:
        return write(await function(task, read(task)))

    return on_loop if inspect.iscoroutinefunction(function) else lambda task: write(function(task, read(task)))


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
    queue: str
    traceparent: str  # W3C Trace Context of the start; empty: it had none
    tracestate: str
    token: str  # for Client.complete_activity(), when the handler has returned LATER; empty: it must not be completed later
    timeout: Optional[float] = None  # seconds until this try's deadline, when it was claimed; None: it has none
    cancel: Optional[Cancelled] = None
    _event: threading.Event = field(default_factory=threading.Event, repr=False)
    _details_max: int = 0
    _beat: Tuple[int, bytes] = (0, b"")

    def heartbeat(self, details: bytes = b"") -> None:
        """Tells that the task makes progress; the newest details are sent with the next renewal, and are `details` if the task has to
        be run again. From any thread."""
        if len(details) > self._details_max:
            raise Error(Status.LIMIT, f"heartbeat details of {len(details)} bytes, the gateway takes {self._details_max}")
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


SENT = [f.name for f in fields(Task) if not f.name.startswith("_") and f.name not in ("cancel", "timeout")]


def read_task(message: Message, details_max: int) -> Task:
    return Task(**{name: getattr(message, name) for name in SENT}, timeout=message.timeout_ms / 1000 or None, _details_max=details_max)


class Held:
    """A task in hand, with what its handler does."""

    def __init__(self, claim: str, task: Task, function: Any) -> None:
        self.claim = claim
        self.task = task
        self.function = function
        self.beaten = 0  # the newest heartbeat that was sent and answered
        self.delivery: Optional[asyncio.Task] = None
        self.told: Dict[str, Any] = {}  # the outcome, once it is to be delivered: the same however often it is sent
        self.refused = False  # the gateway cannot take the outcome: it is a failure that says so
        self.sent = False  # it may have been stored, although no answer came
        self.runner = asyncio.ensure_future(self.run())

    def fire(self, why: Cancelled) -> None:
        """Tells the handler to end; the first notice counts. One in a thread sees it by its task."""
        if self.task._fire(why) and inspect.iscoroutinefunction(self.function):
            asyncio.get_running_loop().call_soon(self.runner.cancel)  # after its first step, so that it has begun, and can tell

    async def run(self) -> Tuple[Any, Optional[BaseException]]:
        try:
            if self.function is None:
                raise Failure(f"this worker has no activity {self.task.activity}", "unknown_activity")
            if inspect.iscoroutinefunction(self.function):
                return await self.function(self.task), None
            return await in_thread(self.function, self.task)
        except BaseException as error:  # SystemExit, too, would end the event loop
            return None, error

    def outcome(self, payload_max: int) -> Dict[str, Any]:
        """How the handler ended. After a notice each error but a Failure means that it ended because of it."""
        output, error = (None, asyncio.CancelledError()) if self.runner.cancelled() else self.runner.result()
        if isinstance(error, Failure):
            return self.failed(error.text, error.type, error.final)
        if error is not None and self.task.cancel is not None:
            return {"claim": self.claim, "cancelled": True, **self.unsent()}
        if error is not None:
            log.error("activity %s of %s failed", self.task.activity, self.task.instance, exc_info=error)
            return self.failed(str(error) or type(error).__name__, type(error).__name__)
        if output is LATER and not self.task.token:
            return self.failed("this task cannot be completed later: it has no token", "no_token", True)
        if output is LATER:
            return {"claim": self.claim, "later": True}
        output = b"" if output is None else output
        if not isinstance(output, (bytes, bytearray, memoryview)):
            return self.failed(f"the handler returned {type(output).__name__}, not bytes", "TypeError")
        if len(output) > payload_max:
            return self.failed(f"the output has {len(output)} bytes, the gateway takes {payload_max}", "too_large", True)
        return {"claim": self.claim, "output": encoded(bytes(output))}

    def failed(self, why: str, kind: str = "", final: bool = False) -> Dict[str, Any]:
        why = str(why).replace("\0", "\ufffd").encode(errors="replace")[:FAILURE_TEXT].decode(errors="replace") or "failed"
        kind = re.sub(r"[^A-Za-z0-9_.-]", "_", kind)[:64]
        return {"claim": self.claim, "failure": {"text": why, "type": kind, "final": bool(final)}, **self.unsent()}

    def unsent(self) -> Dict[str, Any]:
        """The newest heartbeat, unless it has arrived."""
        beat, details = self.task._beat
        return {} if beat == self.beaten else {"heartbeat": True, "details": encoded(details)}


async def in_thread(function: Any, task: Task) -> Tuple[Any, Optional[BaseException]]:
    """Runs a handler in a thread of its own, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future = loop.create_future()

    def work() -> None:
        try:
            result: Tuple[Any, Optional[BaseException]] = (function(task), None)
        except BaseException as error:
            result = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(lambda: done.cancelled() or done.set_result(result))

    threading.Thread(target=work, name=f"thole-{task.activity}", daemon=True).start()
    return await done
