"""A worker: takes tasks of one queue from whichever gateway answers."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Awaitable, Callable, Dict, Optional, Set, Union

from nats.aio.client import Client as NATS

from ._call import Backoff, named, race, refused
from ._session import Session
from .task import Task

log = logging.getLogger("thole")

Handler = Callable[[Task], Union[Awaitable[Optional[bytes]], Optional[bytes]]]
OPEN_SECONDS = 10.0


class Worker:
    """Runs activities. Register them, then `await run()`; `stop()` stops it gracefully.

    The connection should reconnect for ever (max_reconnect_attempts=-1)."""

    def __init__(self, nc: NATS, *, namespace: str = "default", queue: str = "default", name: str = "", slots: int = 10,
                 close_limit: float = 30.0) -> None:
        self.nc = nc
        self.namespace = namespace
        self.queue = queue
        self.name = name or f"python-{os.getpid()}"
        self.slots = slots
        self.close_limit = close_limit  # seconds that tasks may run on after stop(); then they are cancelled: shutdown
        self.handlers: Dict[str, Handler] = {}
        self.sessions: Set[Session] = set()
        self.taken = 0  # slots: until the outcome is stored, or dropped, and the handler has ended
        self.freed: Optional[asyncio.Event] = None
        self.halt: Optional[asyncio.Event] = None
        self._stopped = False
        self._fatal: Optional[BaseException] = None

    def register(self, activity: str, handler: Handler) -> None:
        """Adds an activity: `async def`, or a function, which runs in a thread of its own. It returns bytes or None. Not while
        run() runs."""
        self.handlers[activity] = handler

    def activity(self, name: str) -> Callable[[Handler], Handler]:
        """The same as a decorator."""

        def add(handler: Handler) -> Handler:
            self.register(name, handler)
            return handler

        return add

    def stop(self) -> None:
        """No new tasks; those that run may end within close_limit; then run() returns. From the event loop's thread."""
        self._stopped = True
        if self.halt is not None:
            self.halt.set()

    async def run(self) -> None:
        """Works until stop(). Raises Error when the gateway refuses this worker."""
        named(self.namespace, self.queue, self.name)
        self.freed, self.halt, self._fatal = asyncio.Event(), asyncio.Event(), None
        if self._stopped:
            return
        pause = Backoff()
        try:
            while not self.halt.is_set():
                if await self._serve():
                    pause.reset()
                else:
                    await pause.wait(self.halt)
            if self._fatal is not None:
                raise self._fatal
            await asyncio.gather(*(session.close(self.close_limit) for session in list(self.sessions)))
        finally:
            for session in list(self.sessions):
                session.over("the worker ends")
            self.halt = None

    async def _serve(self) -> bool:
        """One session, until it takes no tasks any more. False: it was none."""
        session = Session(self)
        try:
            await race(session.open(OPEN_SECONDS), self.halt)
        except Exception as error:
            session.over("it could not be opened")
            if refused(error):
                raise
            if not self.halt.is_set():
                log.warning("%s: no session: %s", self.name, error)
            return False
        if not session.subject:
            session.over("the worker stops")
            return False
        await session.take_tasks()
        return session.answers > 0

    def fatal(self, error: BaseException) -> None:
        """The gateway refuses this worker: run() raises it."""
        self._fatal = self._fatal or error
        if self.halt is not None:
            self.halt.set()

    def free(self) -> int:
        return self.slots - self.taken

    def release(self) -> None:
        self.taken -= 1
        if self.freed is not None:
            self.freed.set()
