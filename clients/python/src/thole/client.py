"""Starts and controls instances."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import secrets
import socket
import time
from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple
from urllib.parse import quote

from nats.aio.client import Client as NATS

from ._call import NO_ANSWER, Backoff, Error, Message, Status, call, encoded, named

TRY_SECONDS = 5.0  # for one answer; then the request is repeated
WAIT_SECONDS = 15.0  # of one request of wait()


@dataclass(frozen=True)
class Outcome:
    """How an instance ended."""

    status: int  # Status.OK: completed; APP: failed; CANCELLED
    state: str  # completed, failed, cancelled, terminated
    text: str = ""  # failure text, or reason
    error_type: str = ""  # of a failure
    output: bytes = b""


@dataclass(frozen=True)
class Hindrance:
    """What keeps an instance from going on, until somebody does something."""

    kind: str  # a reason of Instance; or no_engine, not_taken, no_worker, unknown_activity, quarantined
    text: str = ""
    next_step: str = ""  # what would let it go on


@dataclass(frozen=True)
class Instance:
    """What is known of an instance."""

    instance: str
    orchestration: str
    version: int  # 0: not chosen yet
    execution: int
    state: str  # pending, running, waiting, stuck, paused, completed, failed, cancelled, terminated
    reason: str  # why it does not go on: no_code, divergence, paused, …
    detail: str  # the same for people; of a failure the head of its text
    custom_status: str
    parent: str
    created_ms: int  # since 1970
    updated_ms: int
    turns: int
    open_activities: int
    open_timers: int
    hindrances: Tuple[Hindrance, ...] = ()  # of describe(); none: it goes on, waits for time or an event, or has ended


def _instance(info: Any, hindrances: Any = ()) -> Instance:
    found = tuple(Hindrance(each.kind, each.text, each.next_step) for each in hindrances)
    return Instance(*(getattr(info, f.name) for f in fields(Instance)[:-1]), found)


class Client:
    """What has no answer is repeated, with the same request id, for at most `timeout` seconds; then Error UNAVAILABLE.

    `actor` is who asks, at most 200 bytes of printable ASCII: recorded with what is asked for. Default: $THOLE_ACTOR, else USER@HOST.
    `vouched_actor` is who asks, for a connection whose permissions give it that name: NATS vouches for it, and `actor` does not count.
    `name` is the program with which, at most 64 bytes.
    `wait_limit` is how many seconds wait() waits that is given no limit.
    `trace` adds the W3C Trace Context of a request to a dict, as OpenTelemetry's `propagate.inject` does."""

    def __init__(
        self,
        nc: NATS,
        *,
        namespace: str = "default",
        actor: str = "",
        vouched_actor: str = "",
        name: str = "thole for Python",
        trace: Optional[Callable[[Dict[str, str]], Any]] = None,
        wait_limit: float = 600.0,
    ) -> None:
        self.nc = nc
        self.name = name
        self.actor = actor or os.environ.get("THOLE_ACTOR") or _own_actor()
        self.vouched_actor = vouched_actor
        self.trace = trace
        self.wait_limit = wait_limit
        self._prefix = f"thole.{namespace}.gateway.client."

    def _sender(self) -> Dict[str, str]:
        carrier: Dict[str, str] = {}
        if self.trace:
            self.trace(carrier)
        said = {"Thole-Actor": self.actor, "Thole-Client": self.name}
        said.update({name: carrier[name] for name in ("traceparent", "tracestate") if carrier.get(name)})
        for name, value in said.items():
            if not re.fullmatch("[ -~]*", value) or len(self.actor) > 200 or len(self.name) > 64:
                raise Error(Status.INVALID, f"{name} {value[:80]!r} is no text of printable ASCII, or too long")
        return said

    def _by(self) -> str:
        """The end of a subject that names who asks, encoded as ids are."""
        actor = self.vouched_actor
        if len(actor.encode("utf-8", "surrogatepass")) > 200 or re.search("[\0\ud800-\udfff]", actor):
            raise Error(Status.INVALID, f"the vouched actor {actor[:80]!r} is no UTF-8 without NUL, or longer than 200 bytes")
        return actor and ".by." + quote(actor, safe="").replace(".", "%2E")

    async def start(
        self,
        orchestration: str,
        input: bytes = b"",
        *,
        instance: Optional[str] = None,
        version: int = 0,
        require_known: bool = False,
        event: Optional[str] = None,
        event_data: bytes = b"",
        timeout: float = 30.0,
    ) -> str:
        """Starts an instance and returns its id (a random one, if none is given) when that is stored. CONFLICT: it is in use.
        `require_known`: NOT_FOUND, and nothing is started, when no engine knows the orchestration. An `event` is delivered in any case,
        whether the instance is started now or was before (signal with start); CONFLICT then: that instance has ended."""
        if instance == "":
            raise Error(Status.INVALID, "the instance's id is empty")
        request: Dict[str, Any] = {"instance": instance or "", "input": encoded(input), "requestId": secrets.token_hex(16), "version": version}
        if require_known:
            request["requireKnown"] = True
        if event is None:
            return (await self._request("start." + orchestration, request, timeout)).instance
        named(event)
        return (await self._request(f"start_event.{orchestration}~{event}", {**request, "eventData": encoded(event_data)}, timeout)).instance

    async def signal(self, instance: str, event: str, data: bytes = b"", *, timeout: float = 30.0) -> str:
        """Sends an event. CONFLICT: the instance has ended. Returns a note when its code does not run: why, and what would help."""
        request = {"instance": instance, "data": encoded(data), "requestId": secrets.token_hex(16)}
        return (await self._request("signal." + event, request, timeout)).note

    async def cancel(self, instance: str, reason: str = "", *, timeout: float = 30.0) -> str:
        """Asks an instance to end. CONFLICT: it has ended; NOT_FOUND: there is none. Returns a note as `signal` does."""
        request = {"instance": instance, "reason": reason, "requestId": secrets.token_hex(16)}
        return (await self._request("cancel", request, timeout)).note

    async def terminate(self, instance: str, reason: str = "", *, timeout: float = 30.0) -> None:
        """Ends an instance without asking it. CONFLICT: it has ended; NOT_FOUND: there is none."""
        await self._request("terminate", {"instance": instance, "reason": reason, "requestId": secrets.token_hex(16)}, timeout)

    async def query(self, instance: str, query: str, input: bytes = b"", *, timeout: float = 30.0) -> bytes:
        """Asks an instance."""
        return (await self._request("query." + query, {"instance": instance, "input": encoded(input)}, timeout)).output

    async def wait(self, instance: str, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until an instance has ended, however it ended. Error TIMEOUT: it has not, and the error says how it stands, why, and what
        would help; NOT_FOUND: there is none."""
        answer = await self._request("wait", {"instance": instance}, self.wait_limit if timeout is None else timeout)
        return Outcome(answer.status, answer.state, answer.text, answer.error_type, answer.output)

    async def describe(self, instance: str, *, timeout: float = 30.0) -> Instance:
        """Says how an instance stands, and what keeps it from going on. NOT_FOUND: there is none."""
        answer = await self._request("describe", {"instance": instance}, timeout)
        return _instance(answer.info or Message({}), answer.hindrances)

    async def list(self, *, states: Sequence[str] = (), behind: Optional[Instance] = None, timeout: float = 30.0, **filters: Any) -> List[Instance]:
        """Lists instances, newest first: one page; the next one is `behind` its last one, an empty one is the end. Filters: orchestration,
        id_prefix, parent, custom_status, created_after_ms, created_before_ms, and limit (at most 1000; 0: 100)."""
        request = {key: value for key, value in {"states": list(states), **filters}.items() if value}
        if behind:
            request.update(behind_instance=behind.instance, behind_created_ms=behind.created_ms)
        return [_instance(info) for info in (await self._request("list", request, timeout)).instances]

    async def complete_activity(self, token: str, output: bytes = b"", *, timeout: float = 30.0) -> None:
        """Completes a task whose handler has returned LATER, by its token. Too late, or again, it changes nothing."""
        await self._request("complete_activity", {"token": token, "output": encoded(output)}, timeout)

    async def fail_activity(self, token: str, text: str, type: str = "", *, timeout: float = 30.0) -> None:
        """Fails such a task."""
        await self._request("complete_activity", {"token": token, "failure": {"text": text, "type": type}}, timeout)

    async def _request(self, operation: str, request: Dict[str, Any], timeout: float) -> Message:
        """Repeats a request until there is a final answer, or no time."""
        named(*operation.replace("~", ".", 1).split(".")[1:] if operation.startswith("start_event.") else operation.split(".", 1)[1:])
        subject, pause, sender, last = operation + self._by(), Backoff(), self._sender(), Error(Status.UNAVAILABLE, "no answer")
        deadline = time.monotonic() + timeout
        while True:
            left, limit = deadline - time.monotonic(), TRY_SECONDS
            if operation == "wait":
                request["waitMs"] = max(int(min(WAIT_SECONDS, left) * 1000), 1)
                if left <= WAIT_SECONDS:
                    request["explain"] = True
                limit += request["waitMs"] / 1000
            answer = await self._call(subject, request, max(min(limit, left + 0.5), 0.05), sender)  # at the deadline it still counts
            if operation == "wait" and answer.state and answer.status in (Status.OK, Status.APP, Status.CANCELLED):
                return answer
            if operation == "wait" and answer.status == Status.TIMEOUT:
                pause.reset()
            elif operation == "wait" and answer.status == Status.OK:
                answer.status = NO_ANSWER
            elif answer.status == Status.OK:
                return answer
            elif answer.status not in (Status.UNAVAILABLE, NO_ANSWER):
                raise Error(answer.status, answer.text)
            if answer.status != NO_ANSWER or time.monotonic() < deadline:
                status = Status.UNAVAILABLE if answer.status == NO_ANSWER else answer.status
                last = Error(status, answer.text, answer.state, answer.reason, answer.next_step)
            await asyncio.sleep(max(min(pause.next(), deadline - time.monotonic()), 0.0))
            if time.monotonic() >= deadline:
                raise last

    async def _call(self, operation: str, request: Dict[str, Any], timeout: float, sender: Dict[str, str]) -> Message:
        return await call(self.nc, self._prefix + operation, request, timeout, sender)


def _own_actor() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # the system does not know its user
        name = str(os.getuid())
    return re.sub("[^ -~]", "?", f"{name[:100]}@{socket.gethostname()[:99]}")
