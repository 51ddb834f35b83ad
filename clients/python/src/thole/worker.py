"""A worker: takes tasks of one queue from whichever gateway answers."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any, Awaitable, Callable, Coroutine, Dict, List, Optional, Sequence, Set, Tuple, Union

from nats.aio.client import Client as NATS

from ._call import NO_ANSWER, Backoff, Error, Message, Status, call, encoded, named, parse
from .task import Cancelled, Held, Task, read_task

log = logging.getLogger("thole")

Handler = Callable[[Task], Union[Awaitable[Optional[bytes]], Optional[bytes]]]
NEXT_WAIT = 10.0  # of next: then it is asked again
NEXT_SPARE = 5.0  # before it counts as not answered
ANSWER_WAIT = 5.0  # of open and renew; no more than a third of the lease
STORE_WAIT = 10.0  # of complete
CLOSE_SPARE = 10.0  # of close, more than its limit
PAYLOAD_DEFAULT = 256 * 1024
DETAILS_DEFAULT = 16 * 1024  # of a gateway that does not say


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
        self.taken = 0  # slots: of tasks in hand, and of handlers that run on for lost ones
        self.held: Dict[str, Held] = {}  # in hand: until the outcome is stored or refused, or the claim is lost
        self.ended: Dict[str, float] = {}  # claims that were in hand, and when they ended: a task may come twice
        self.session: Optional[Session] = None  # the newest one, which may not be open yet, or not any more
        self.resume = ""  # the last one that was opened, until its lease is over
        self.lease = self.lease_end = 0.0
        self.payload_max, self.details_max = PAYLOAD_DEFAULT, DETAILS_DEFAULT
        self._timer: Optional[asyncio.TimerHandle] = None
        self._stopped = self._ran = False
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
        if self.session is not None:
            self.stop_by = self.loop.time() + self.close_limit
            self.halt.set()
            if not self.session.subject and not self.held:
                self.session.end()  # there is nothing to open it for any more

    async def run(self) -> None:
        """Works until stop(); after that, at once. Raises Error when the gateway refuses this worker. A worker runs once."""
        if self._ran:
            raise RuntimeError("a worker runs once, and this one has run: make another one")
        self._ran = True
        named(self.namespace, self.queue, self.name)
        self.loop, self.halt, self.freed = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        pause = Backoff()
        try:
            while self.held or not self._stopped:
                session = self.session = Session(self)
                session.spawn(session.work())
                await session.ended.wait()
                if self._fatal is not None:
                    raise self._fatal
                if session.closed:
                    break
                if session.used:
                    pause.reset()  # another one at once
                elif self.held:
                    await asyncio.sleep(pause.next())
                else:
                    await asyncio.wait([asyncio.ensure_future(self.halt.wait())], timeout=pause.next())
        finally:
            self.lose("the worker ends")
            self.session = None

    def fatal(self, error: BaseException) -> None:
        """The gateway refuses this worker: run() raises it."""
        self._fatal = self._fatal or error
        if self.session is not None:
            self.session.end()

    # ---- the lease ----

    def patience(self) -> float:
        """How long an answer to open or renew may take."""
        return min(ANSWER_WAIT, self.lease / 3 or ANSWER_WAIT)

    def renewed(self, sent: float, cancelled: Sequence[Message], gone: Sequence[str]) -> None:
        """What was sent then has been answered."""
        self.lease_end = sent + self.lease
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(self.lease_end, self.lease_over)
        for notice in cancelled:
            self.notify(notice)
        for claim in gone:
            if claim in self.held:
                log.warning("the claim of %s is gone", self.held[claim].task.instance)
                self.drop(self.held[claim])
        self.ended = {claim: end for claim, end in self.ended.items() if end + self.lease > self.loop.time()}

    def lease_over(self) -> bool:
        """Whether the lease is over; then all is lost. The timer calls it, and whoever is about to go by the lease: the process may have
        been stopped for long, and the timer need not be what runs first then."""
        over = bool(self.resume) and self.loop.time() >= self.lease_end
        if over:
            self.lose("no gateway answered for a lease")
        return over

    def lose(self, why: str) -> None:
        """Ends the session for good: what is in hand is lost, and the next session is a new one."""
        for held in list(self.held.values()):
            log.warning("%s of %s is lost: %s", held.task.activity, held.task.instance, why)
            self.drop(held)
        self.ended, self.resume = {}, ""
        if self._timer is not None:
            self._timer.cancel()
        if self.session is not None:
            self.session.end()

    # ---- tasks in hand ----

    def begin(self, message: Message) -> None:
        """Runs a task, unless its claim is known: it may come twice."""
        if message.claim not in self.held and message.claim not in self.ended:
            self.taken += 1
            held = self.held[message.claim] = Held(message.claim, read_task(message, self.details_max), self.handlers.get(message.activity))
            held.runner.add_done_callback(lambda _: self.handled(held))

    def handled(self, held: Held) -> None:
        """The handler has returned."""
        if self.held.get(held.claim) is not held:
            self.release()  # it was lost
        elif self.session is not None and self.session.subject:  # else the session does that once it is open
            self.session.deliver(held)

    def drop(self, held: Held) -> None:
        """Gives a claim up: its handler is to end, nothing is sent for it."""
        held.fire(Cancelled("lease_lost"))
        self.forget(held)

    def forget(self, held: Held) -> None:
        """Its outcome is stored or refused, or it is lost."""
        if self.held.get(held.claim) is held:
            del self.held[held.claim]
            self.ended[held.claim] = self.loop.time()
            if held.delivery is not None:
                held.delivery.cancel()
            if held.runner.done():
                self.release()

    def release(self) -> None:
        self.taken -= 1
        self.freed.set()

    def notify(self, notice: Message) -> None:
        if notice.claim in self.held:
            self.held[notice.claim].fire(Cancelled(notice.kind, notice.reason, notice.grace_ms / 1000))

    def running(self) -> Tuple[List[Dict[str, Any]], List[Tuple[Held, int]]]:
        """What is in hand with heartbeats, as many as one message takes; the others come next time."""
        running: List[Dict[str, Any]] = []
        beats: List[Tuple[Held, int]] = []
        budget = self.nc.max_payload // 2
        for held in self.held.values():
            entry: Dict[str, Any] = {"claim": held.claim}
            beat, details = held.task._beat
            size = len(details) * 4 // 3 + 64
            if beat != held.beaten and (size <= budget or not beats):
                entry.update(heartbeat=True, details=encoded(details))
                beats.append((held, beat))
                budget -= size
            running.append(entry)
        return running, beats


class Session:
    """One with one gateway: docs/gateway.md, "A worker". When that does not answer, or does not go on, the session ends, and the
    next one takes its tasks over."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.subject = ""  # empty: it is not open yet
        self.renew_every = 0.0
        self.reconnects = worker.nc.stats["reconnects"]
        self.used = self.closed = False  # an operation, or close, has been answered
        self.inbox: Any = None  # its own: of a task that was moved the old gateway says that it is lost
        self.ended = asyncio.Event()
        self.jobs: Set[asyncio.Task] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task:
        """Does something until the session ends."""
        job = asyncio.ensure_future(work)
        self.jobs.add(job)
        job.add_done_callback(self._finished)
        return job

    def _finished(self, job: asyncio.Task) -> None:
        self.jobs.discard(job)
        if not job.cancelled() and job.exception() is not None:
            self.worker.fatal(job.exception())

    def end(self) -> None:
        if self.inbox is not None and not self.ended.is_set() and not self.worker.nc.is_closed:
            asyncio.ensure_future(self.inbox.unsubscribe())
        self.ended.set()
        for job in self.jobs:
            job.cancel()

    async def work(self) -> None:
        worker = self.worker
        if worker.lease_over() or not await self.open():
            return self.end()
        self.spawn(self.take_tasks())
        self.spawn(self.renewals())
        await worker.halt.wait()
        await self.close()

    async def open(self) -> bool:
        """Goes on with the tasks of the session before it, unless the lease of that is over."""
        worker = self.worker
        self.inbox = await worker.nc.subscribe(worker.nc.new_inbox(), cb=self.notice_arrived)
        request = {"worker": worker.name, "slots": worker.slots, "activities": list(worker.handlers), "inbox": self.inbox.subject,
                   "host": socket.gethostname().encode()[:64].decode(errors="ignore"), "resume": worker.resume, "claims": list(worker.held)}
        sent = worker.loop.time()
        answer = await call(worker.nc, f"thole.{worker.namespace}.gateway.open.{worker.queue}", request, worker.patience())
        if answer.status in (Status.INVALID, Status.DENIED):
            worker.fatal(Error(answer.status, answer.text))
        if answer.status or not (answer.subject and answer.session and answer.lease_ms):
            log.warning("%s: no session: %s", worker.name, answer.text)
            return False
        if worker.lease_over():
            return False  # the answer is for tasks that are lost by now
        self.subject, worker.resume, worker.lease = answer.subject, answer.session, answer.lease_ms / 1000
        self.renew_every = answer.renew_ms / 1000 if 0 < answer.renew_ms <= answer.lease_ms / 2 else worker.lease / 3
        worker.payload_max, worker.details_max = answer.payload_max or PAYLOAD_DEFAULT, answer.details_max or DETAILS_DEFAULT
        log.info("%s: session %s of gateway %s opened, %d tasks in hand", worker.name, answer.session, answer.gateway, len(worker.held))
        worker.renewed(sent, (), answer.gone)
        for held in worker.held.values():
            if held.runner.done():
                self.deliver(held)
        return True

    async def call(self, operation: str, request: Dict[str, Any], timeout: float) -> Message:
        """Makes a request, and ends the session if that has no answer or the gateway does not go on."""
        if self.worker.lease_over():
            return Message({"status": NO_ANSWER})
        answer = await call(self.worker.nc, f"{self.subject}.{operation}", request, timeout)
        if answer.status == Status.OK:
            self.used = True
        elif answer.status == Status.DENIED or answer.status == Status.INVALID and operation != "complete":
            self.worker.fatal(Error(answer.status, answer.text))
        else:
            log.warning("%s: %s: %s (status %d)", self.worker.name, operation, answer.text, answer.status)
            if answer.status in (NO_ANSWER, Status.NOT_FOUND) or answer.status == Status.UNAVAILABLE and operation == "next":
                self.end()
        return answer

    async def take_tasks(self) -> None:
        """Asks for tasks until the worker stops; an answer that comes after that may still bring some."""
        worker, pause = self.worker, Backoff()
        while not worker.halt.is_set():
            if worker.taken >= worker.slots:
                worker.freed.clear()
                await worker.freed.wait()
                continue
            answer = await self.call("next", {"max": worker.slots - worker.taken, "waitMs": int(NEXT_WAIT * 1000)}, NEXT_WAIT + NEXT_SPARE)
            if answer.status != Status.OK:
                await asyncio.sleep(pause.next())
            elif not worker.lease_over():
                pause.reset()
                for message in answer.tasks:
                    worker.begin(message)

    def deliver(self, held: Held) -> None:
        held.delivery = self.spawn(self.complete(held))

    async def complete(self, held: Held) -> None:
        """Delivers an outcome until it is answered; if the session ends before, the next one does."""
        pause, task = Backoff(), held.task
        held.told = held.told or held.outcome(self.worker.payload_max)
        while True:
            again, held.sent = held.sent, True
            answer = await self.call("complete", {"outcomes": [held.told]}, STORE_WAIT)
            result = answer.results[0] if answer.status == Status.OK and answer.results else answer
            if result.status == Status.INVALID:
                text = f"the gateway cannot take the outcome: {result.text}"
                log.error("%s of %s: %s; it is a failed try", task.activity, task.instance, text)
                if held.refused:
                    return self.worker.fatal(Error(Status.INVALID, text))
                held.refused, held.told = True, held.failed(text, "outcome_refused")
                continue
            if result is not answer and result.status not in (Status.UNAVAILABLE, Status.TIMEOUT):
                if result.status == Status.FENCED and again:
                    log.info("the outcome of %s of %s was sent before, and may be stored: its claim is gone", task.activity, task.instance)
                elif result.status != Status.OK:
                    log.warning("the outcome of %s of %s is refused: %s (%d)", task.activity, task.instance, result.text, result.status)
                return self.worker.forget(held)
            await asyncio.sleep(pause.next())

    async def renewals(self) -> None:
        worker, pause, wait = self.worker, Backoff(), self.renew_every
        while True:
            await asyncio.sleep(wait)
            if worker.nc.stats["reconnects"] != self.reconnects:
                return self.end()  # answers may be lost
            sent = worker.loop.time()
            running, beats = worker.running()
            answer = await self.call("renew", {"running": running}, worker.patience())
            if answer.status == Status.OK:
                pause.reset()
                wait = max(0.0, sent + self.renew_every - worker.loop.time())
                for held, beat in beats:
                    held.beaten = beat
                worker.renewed(sent, answer.cancelled, answer.gone)
            else:
                wait = min(pause.next(), self.renew_every)

    async def notice_arrived(self, message: Any) -> None:
        notice = parse(message.data)
        self.notify(notice)
        self.worker.loop.call_later(0.1, self.notify, notice)  # it may overtake its task by a moment

    def notify(self, notice: Message) -> None:
        if not self.ended.is_set():
            self.worker.notify(notice)

    async def close(self) -> None:
        """Ends the session when it holds nothing any more."""
        worker, pause = self.worker, Backoff()
        while not self.closed:
            limit = max(0.0, worker.stop_by - worker.loop.time())
            answer = await self.call("close", {"limitMs": int(limit * 1000)}, limit + CLOSE_SPARE)
            if answer.status == Status.OK:
                self.closed = True
                self.end()
            await asyncio.sleep(pause.next())
