"""Starts and controls instances."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import secrets
import socket
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional
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


class Client:
    """What has no answer is repeated, with the same request id, for at most `timeout` seconds; then Error UNAVAILABLE.

    `actor` is who asks, at most 200 bytes of printable ASCII: recorded with what is asked for. Default: $THOLE_ACTOR, else USER@HOST.
    `vouched_actor` is who asks, for a connection whose permissions give it that name: NATS vouches for it, and `actor` does not count.
    `name` is the program with which, at most 64 bytes.
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
    ) -> None:
        self.nc = nc
        self.name = name
        self.actor = actor or os.environ.get("THOLE_ACTOR") or _own_actor()
        self.vouched_actor = vouched_actor
        self.trace = trace
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

    async def start(self, orchestration: str, input: bytes = b"", *, instance: Optional[str] = None, version: int = 0, timeout: float = 30.0) -> str:
        """Starts an instance and returns its id (a random one, if none is given) when that is stored. CONFLICT: it is in use."""
        if instance == "":
            raise Error(Status.INVALID, "the instance's id is empty")
        request = {"instance": instance or "", "input": encoded(input), "requestId": secrets.token_hex(16), "version": version}
        return (await self._request("start." + orchestration, request, timeout)).instance

    async def signal(self, instance: str, event: str, data: bytes = b"", *, timeout: float = 30.0) -> None:
        """Sends an event. CONFLICT: the instance has ended."""
        request = {"instance": instance, "data": encoded(data), "requestId": secrets.token_hex(16)}
        await self._request("signal." + event, request, timeout)

    async def cancel(self, instance: str, reason: str = "", *, timeout: float = 30.0) -> None:
        """Asks an instance to end. CONFLICT: it has ended; NOT_FOUND: there is none."""
        await self._request("cancel", {"instance": instance, "reason": reason, "requestId": secrets.token_hex(16)}, timeout)

    async def terminate(self, instance: str, reason: str = "", *, timeout: float = 30.0) -> None:
        """Ends an instance without asking it. CONFLICT: it has ended; NOT_FOUND: there is none."""
        await self._request("terminate", {"instance": instance, "reason": reason, "requestId": secrets.token_hex(16)}, timeout)

    async def query(self, instance: str, query: str, input: bytes = b"", *, timeout: float = 30.0) -> bytes:
        """Asks an instance."""
        return (await self._request("query." + query, {"instance": instance, "input": encoded(input)}, timeout)).output

    async def wait(self, instance: str, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until an instance has ended, however it ended. Error TIMEOUT: it still runs; NOT_FOUND: there is none."""
        answer = await self._request("wait", {"instance": instance}, timeout)
        return Outcome(answer.status, answer.state, answer.text, answer.error_type, answer.output)

    async def _request(self, operation: str, request: Dict[str, Any], timeout: Optional[float]) -> Message:
        """Repeats a request until there is a final answer, or no time."""
        named(*operation.split(".", 1)[1:])
        subject, pause, sender, last = operation + self._by(), Backoff(), self._sender(), Error(Status.UNAVAILABLE, "no answer")
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while True:
            left, limit = deadline - time.monotonic(), TRY_SECONDS
            if operation == "wait":
                request["waitMs"] = max(int(min(WAIT_SECONDS, left) * 1000), 1)
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
                last = Error(Status.UNAVAILABLE if answer.status == NO_ANSWER else answer.status, answer.text)
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
