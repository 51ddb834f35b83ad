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

from nats.aio.client import Client as NATS

from ._call import PAUSE_MIN, Backoff, Error, NoAnswer, Status, call, encoded, named, octets, text

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
    `name` is the program with which, at most 64 bytes.
    `trace` adds the W3C Trace Context of a request to a dict, as OpenTelemetry's `propagate.inject` does."""

    def __init__(
        self,
        nc: NATS,
        *,
        namespace: str = "default",
        actor: str = "",
        name: str = "thole for Python",
        trace: Optional[Callable[[Dict[str, str]], Any]] = None,
    ) -> None:
        self.nc = nc
        self.name = name
        self.actor = actor or os.environ.get("THOLE_ACTOR") or _own_actor()
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

    async def start(self, orchestration: str, input: bytes = b"", *, instance: str = "", version: int = 0, timeout: float = 30.0) -> str:
        """Starts an instance and returns its id (a random one for "") when that is stored. CONFLICT: it is in use."""
        request = {"instance": instance, "input": encoded(input), "requestId": secrets.token_hex(16), "version": version}
        return text(await self._request("start." + orchestration, request, timeout), "instance")

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
        return octets(await self._request("query." + query, {"instance": instance, "input": encoded(input)}, timeout), "output")

    async def wait(self, instance: str, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until an instance has ended, however it ended. Error TIMEOUT: it still runs; NOT_FOUND: there is none."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause, last, sender = Backoff(), Error(Status.UNAVAILABLE, "no answer"), self._sender()
        while True:
            begin = time.monotonic()
            wait = WAIT_SECONDS if deadline is None else max(min(WAIT_SECONDS, deadline - begin), 0.001)
            try:
                answer = await self._call("wait", {"instance": instance, "waitMs": max(int(wait * 1000), 1)}, wait + 5.0, deadline, sender)
                if text(answer, "state"):
                    return Outcome(Status.OK, text(answer, "state"), output=octets(answer, "output"))
            except Error as error:
                if error.status in (Status.APP, Status.CANCELLED) and text(error.answer, "state"):
                    return Outcome(error.status, text(error.answer, "state"), error.text, text(error.answer, "errorType"))
                if error.status not in (Status.TIMEOUT, Status.UNAVAILABLE):
                    raise
                last = error
                if error.status == Status.TIMEOUT and time.monotonic() - begin >= PAUSE_MIN:
                    pause.reset()  # it has waited; an answer at once is no reason to ask at once
                    if deadline is None or time.monotonic() < deadline:
                        continue
            except NoAnswer as error:
                if deadline is None or time.monotonic() < deadline:
                    last = Error(Status.UNAVAILABLE, str(error))
            await _pause(pause, deadline, last)

    async def _call(
        self, operation: str, request: Dict[str, Any], timeout: float, deadline: Optional[float], sender: Dict[str, str]
    ) -> Dict[str, Any]:
        if deadline is not None:
            timeout = max(min(timeout, deadline + 0.5 - time.monotonic()), 0.05)  # an answer at the deadline still counts
        return await call(self.nc, self._prefix + operation, request, timeout, sender)

    async def _request(self, operation: str, request: Dict[str, Any], timeout: float) -> Dict[str, Any]:
        named(*operation.split(".", 1)[1:])
        pause, deadline, sender = Backoff(), time.monotonic() + timeout, self._sender()
        while True:
            try:
                return await self._call(operation, request, TRY_SECONDS, deadline, sender)
            except Error as error:
                if error.status != Status.UNAVAILABLE:
                    raise
                last = error
            except NoAnswer as error:
                last = Error(Status.UNAVAILABLE, str(error))
            await _pause(pause, deadline, last)


def _own_actor() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # the system does not know its user
        name = str(os.getuid())
    return re.sub("[^ -~]", "?", f"{name[:100]}@{socket.gethostname()[:99]}")


async def _pause(pause: Backoff, deadline: Optional[float], last: Error) -> None:
    seconds = pause.next()
    if deadline is not None and time.monotonic() + seconds >= deadline:
        await asyncio.sleep(max(0.0, deadline - time.monotonic()))
        raise last
    await asyncio.sleep(seconds)
