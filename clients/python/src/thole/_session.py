"""A session with one gateway: docs/gateway.md, "A worker"."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ._call import (Backoff, Error, NoAnswer, Status, answered, call, encoded, items, number, race, refused, text, unknown)
from .task import Cancelled, Failure, Task, read_task

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger("thole")

NEXT_WAIT = 10.0  # of next: then it is asked again
NEXT_SPARE = 5.0
ANSWER_WAIT = 10.0
CLOSE_SPARE = 10.0
RENEW_WAIT = 2.0
EARLY_NOTICES = 64  # that are kept: a notice may overtake its task by a moment
COMPLETED_CLAIMS = 4096  # that are remembered, since a task may come twice
FAILURE_TEXT = 4096
PAYLOAD_DEFAULT = 256 * 1024


class Held:
    """A claim that is in hand: until its outcome is stored or refused, or it is lost."""

    def __init__(self, session: Session, claim: str, task: Task) -> None:
        self.session = session
        self.claim = claim
        self.task = task
        self.dropped = asyncio.Event()  # nothing may be sent for it any more
        self.beaten = 0  # the newest heartbeat that was sent and answered
        self.handler: Optional[asyncio.Future] = None
        self.asynchronous = False
        self.runner = asyncio.ensure_future(self.run())

    def fire(self, why: Cancelled) -> None:
        """Tells the handler to end; the first notice counts."""
        if self.task._fire(why) and self.handler is not None and self.asynchronous and not self.handler.done():
            self.cancel()  # a handler in a thread sees it by its task

    def cancel(self) -> None:
        """Cancels the handler after its first step, so that it has begun, and can tell."""
        asyncio.get_running_loop().call_soon(self.handler.cancel)

    async def run(self) -> None:
        try:
            function = self.session.worker.handlers.get(self.task.activity)
            if function is None:
                error: Any = Failure(f"this worker has no activity {self.task.activity}", "unknown_activity")
                output = None
            else:
                self.asynchronous = inspect.iscoroutinefunction(function)
                work = guarded(function(self.task)) if self.asynchronous else in_thread(function, self.task)
                self.handler = asyncio.ensure_future(work)
                if self.task.cancel is not None and self.asynchronous:
                    self.cancel()
                await asyncio.wait([self.handler])
                output, error = (None, asyncio.CancelledError()) if self.handler.cancelled() else self.handler.result()
            if not self.dropped.is_set():
                await self.session.complete(self, self.outcome(output, error))
        finally:
            self.session.worker.release()
            self.session.forget(self)

    def outcome(self, output: Any, error: Optional[BaseException]) -> Dict[str, Any]:
        """How the handler ended. After a notice each error but a Failure means that it ended because of it."""
        if error is None:
            output = b"" if output is None else output
            if not isinstance(output, (bytes, bytearray, memoryview)):
                return self.failed(f"the handler returned {type(output).__name__}, not bytes", "TypeError")
            if len(output) > self.session.payload_max:
                return self.failed(f"the output has {len(output)} bytes, the gateway takes {self.session.payload_max}", "too_large", True)
            return {"claim": self.claim, "output": encoded(bytes(output))}
        if isinstance(error, Failure):
            return self.failed(error.text, error.type, error.final)
        if self.task.cancel is not None:
            return {"claim": self.claim, "cancelled": True}
        log.error("activity %s of %s failed", self.task.activity, self.task.instance, exc_info=error)
        return self.failed(str(error) or type(error).__name__, type(error).__name__)

    def failed(self, why: str, kind: str = "", final: bool = False) -> Dict[str, Any]:
        why = str(why).encode(errors="replace")[:FAILURE_TEXT].decode(errors="replace") or "failed"
        return {"claim": self.claim, "failure": {"text": why, "type": re.sub(r"[^A-Za-z0-9_.-]", "_", kind)[:64], "final": bool(final)}}


async def guarded(work: Any) -> Tuple[Any, Optional[BaseException]]:
    try:
        return await work, None
    except BaseException as error:  # SystemExit, too, would end the event loop
        return None, error


def in_thread(function: Any, task: Task) -> Any:
    """Runs a handler in a thread of its own, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future = loop.create_future()

    def settle(result: Tuple[Any, Optional[BaseException]]) -> None:
        if not done.done():
            done.set_result(result)

    def work() -> None:
        try:
            result: Tuple[Any, Optional[BaseException]] = (function(task), None)
        except BaseException as error:
            result = (None, error)
        try:
            loop.call_soon_threadsafe(settle, result)
        except RuntimeError:  # the loop is closed: the process ends
            pass

    threading.Thread(target=work, name=f"thole-{task.activity}", daemon=True).start()
    return done


class Session:
    """Over when its event is set: lost, closed, or its gateway stops and it holds nothing."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.id = ""
        self.subject = ""
        self.lease = self.renew_every = 0.0
        self.payload_max = PAYLOAD_DEFAULT
        self.inbox: Any = None
        self.held: Dict[str, Held] = {}
        self.completed: OrderedDict[str, None] = OrderedDict()
        self.early: OrderedDict[str, Cancelled] = OrderedDict()
        self.lease_start = 0.0
        self.answers = 0  # with status 0, to anything but open
        self.retired = False  # no further tasks; over when it holds nothing
        self.ended = asyncio.Event()
        self.asking: Optional[asyncio.Future] = None  # next
        self.reconnects = 0  # of the connection when it was sent
        self.renewing: Optional[asyncio.Future] = None

    async def open(self, timeout: float) -> None:
        worker = self.worker
        self.inbox = await worker.nc.subscribe(worker.nc.new_inbox(), cb=self.notice_arrived)
        request = {"worker": worker.name, "slots": worker.slots, "activities": list(worker.handlers), "inbox": self.inbox.subject}
        sent = time.monotonic()
        answer = await call(worker.nc, f"thole.{worker.namespace}.gateway.open.{worker.queue}", request, timeout)
        lease, renew = number(answer, "leaseMs") / 1000, number(answer, "renewMs") / 1000
        subject, self.id = text(answer, "subject"), text(answer, "session")
        if not subject or lease <= 0:
            raise NoAnswer("the answer to open has no subject or no lease")
        self.lease, self.renew_every = lease, renew if 0 < renew <= lease / 2 else lease / 3
        self.payload_max = number(answer, "payloadMax") or PAYLOAD_DEFAULT
        self.lease_start, self.subject = sent, subject
        log.info("%s: session %s of gateway %s opened", worker.name, self.id, text(answer, "gateway"))
        worker.sessions.add(self)
        self.renewing = asyncio.ensure_future(self.renewals())

    async def call(self, operation: str, request: Dict[str, Any], timeout: float) -> Dict[str, Any]:
        if self.expired():  # the process may have been stopped for long, and what runs first then need not be the renewals
            raise NoAnswer("the lease is over")
        try:
            answer = await call(self.worker.nc, f"{self.subject}.{operation}", request, timeout)
        except (Error, NoAnswer) as error:
            if refused(error) and not self.ended.is_set():
                self.worker.fatal(error)
            if unknown(error) and not self.held:
                self.over("the gateway does not know it")
            raise
        self.answers += 1
        return answer

    def expired(self) -> bool:
        """Ends the session when its lease is over."""
        if time.monotonic() >= self.lease_start + self.lease:
            self.over("no renewal was answered for a lease")
        return self.ended.is_set()

    def over(self, why: str) -> None:
        """Ends the session: what is in hand is lost."""
        if self.ended.is_set():
            return
        self.ended.set()
        if self.subject:
            log.info("%s: session %s is over: %s; %d tasks in hand", self.worker.name, self.id, why, len(self.held))
        for held in list(self.held.values()):
            self.lose(held)
        self.worker.sessions.discard(self)
        if self.asking is not None:
            self.asking.cancel()
        if self.inbox is not None:
            asyncio.ensure_future(self.unsubscribe())

    async def unsubscribe(self) -> None:
        try:
            await self.inbox.unsubscribe()
        except Exception as error:  # the connection is closed
            log.debug("unsubscribe: %r", error)

    def lose(self, held: Held) -> None:
        """Gives a claim up: its handler is to end, nothing is sent for it."""
        held.dropped.set()
        held.fire(Cancelled("lease_lost"))
        self.held.pop(held.claim, None)
        self.remember(held.claim)

    def remember(self, claim: str) -> None:
        self.completed[claim] = None
        if len(self.completed) > COMPLETED_CLAIMS:
            self.completed.popitem(last=False)

    # ---- tasks ----

    async def take_tasks(self) -> None:
        """Asks for tasks until the worker stops, or this session takes none any more."""
        worker, pause = self.worker, Backoff()
        while not worker.halt.is_set() and not self.ended.is_set():
            free = worker.free()
            if free <= 0:
                worker.freed.clear()
                await race(worker.freed.wait(), worker.halt, self.ended)
                continue
            self.reconnects = worker.nc.stats["reconnects"]
            self.asking = asyncio.ensure_future(self.next(free))
            # When the worker stops, next goes on until the session is closed: its answer may still bring tasks.
            await race(asyncio.wait([self.asking]), worker.halt)
            if not self.asking.done():
                return
            if self.asking.cancelled():  # asked anew after a reconnection
                continue
            error = self.asking.exception()
            if error is None:
                pause.reset()
            elif answered(error) == Status.UNAVAILABLE:
                self.retire()
                return
            else:
                await pause.wait(worker.halt, self.ended)

    async def next(self, free: int) -> None:
        answer = await self.call("next", {"max": free, "waitMs": int(NEXT_WAIT * 1000)}, NEXT_WAIT + NEXT_SPARE)
        for message in items(answer, "tasks", dict):
            claim = text(message, "claim")
            if claim in self.held or claim in self.completed or self.expired():
                continue  # a task may come twice
            self.worker.taken += 1
            self.held[claim] = Held(self, claim, read_task(message, self.payload_max))
            if claim in self.early:
                self.held[claim].fire(self.early.pop(claim))

    def forget(self, held: Held) -> None:
        if self.held.get(held.claim) is held:
            del self.held[held.claim]
            self.remember(held.claim)
        if self.retired and not self.held:
            self.over("its gateway stops")

    def retire(self) -> None:
        """Takes no further tasks; those that run are renewed and completed."""
        log.info("%s: the gateway of session %s stops", self.worker.name, self.id)
        self.retired = True
        if not self.held:
            self.over("its gateway stops")

    async def complete(self, held: Held, outcome: Dict[str, Any]) -> None:
        """Delivers an outcome until it is answered, or the claim is lost."""
        pause = Backoff()
        while not held.dropped.is_set():
            begin = time.monotonic()
            try:
                answer = await race(self.call("complete", {"outcomes": [outcome]}, ANSWER_WAIT), held.dropped)
                results = items(answer, "results", dict) if answer else []
                status = number(results[0], "status") if results else Status.UNAVAILABLE
                if status not in (Status.UNAVAILABLE, Status.TIMEOUT):
                    if status != Status.OK:
                        log.warning("the outcome of %s of %s is refused: %s (%d)", held.task.activity, held.task.instance,
                                    text(results[0], "text"), status)
                    return
            except (Error, NoAnswer) as error:
                log.warning("complete: %s", error)
            if time.monotonic() - begin < ANSWER_WAIT:
                await pause.wait(held.dropped)

    # ---- renewals and notices ----

    async def renewals(self) -> None:
        """They go on until the session is over: when no renewal has been answered for a lease, it is lost."""
        pause = Backoff()
        due = time.monotonic() + self.renew_every
        while not self.ended.is_set():
            end = self.lease_start + self.lease
            await race(asyncio.sleep(max(0.0, min(due, end) - time.monotonic())), self.ended)
            if self.expired():
                return
            sent = time.monotonic()
            running, beats = self.running()
            try:
                timeout = max(min(max(self.renew_every, RENEW_WAIT), (self.lease - self.renew_every) / 2, end - sent), 0.001)
                answer = await race(self.call("renew", {"running": running}, timeout), self.ended)
                if answer is None:
                    return
                cancelled, gone = items(answer, "cancelled", dict), items(answer, "gone", str)
                self.lease_start, due = sent, sent + self.renew_every
                pause.reset()
                self.renewed(cancelled, gone, beats)
            except (Error, NoAnswer) as error:
                log.warning("%s: session %s is not renewed: %s", self.worker.name, self.id, error)
                due = time.monotonic() + min(pause.next(), self.renew_every)

    def running(self) -> Tuple[List[Dict[str, Any]], List[Tuple[Held, int]]]:
        """What is in hand with heartbeats, as many as one message takes; the others come next time."""
        running: List[Dict[str, Any]] = []
        beats: List[Tuple[Held, int]] = []
        budget = self.worker.nc.max_payload // 2
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

    def renewed(self, cancelled: List[Dict[str, Any]], gone: List[str], beats: List[Tuple[Held, int]]) -> None:
        for held, beat in beats:
            held.beaten = beat
        for notice in cancelled:
            self.notify(notice)
        for claim in gone:
            if claim in self.held:
                log.warning("the claim of %s is gone", self.held[claim].task.instance)
                self.lose(self.held[claim])
        if self.worker.nc.stats["reconnects"] != self.reconnects and self.asking is not None:
            self.asking.cancel()  # its answer may be lost

    async def notice_arrived(self, message: Any) -> None:
        try:
            notice = json.loads(message.data)
        except (ValueError, RecursionError):
            return
        if isinstance(notice, dict):
            self.notify(notice)

    def notify(self, notice: Dict[str, Any]) -> None:
        try:
            claim = text(notice, "claim")
            why = Cancelled(text(notice, "kind"), text(notice, "reason"), number(notice, "graceMs") / 1000)
            if claim in self.held:
                self.held[claim].fire(why)
            elif claim not in self.completed:
                self.early.setdefault(claim, why)
                if len(self.early) > EARLY_NOTICES:
                    self.early.popitem(last=False)
        except NoAnswer as error:
            log.warning("a notice cannot be read: %s", error)

    async def close(self, limit: float) -> None:
        """Returns when it holds nothing any more, or cannot be asked."""
        pause, deadline = Backoff(), time.monotonic() + limit + CLOSE_SPARE
        while not self.ended.is_set() and time.monotonic() < deadline:
            try:
                await race(self.call("close", {"limitMs": int(limit * 1000)}, deadline - time.monotonic()), self.ended)
                break
            except (Error, NoAnswer) as error:
                log.warning("%s: session %s is not closed: %s", self.worker.name, self.id, error)
                await pause.wait(self.ended)
        self.over("closed")
