"""Requests to a gateway: JSON, statuses, pauses."""

from __future__ import annotations

import asyncio
import base64
import binascii
import enum
import json
import re
from typing import Any, Awaitable, Dict, List, Mapping, Optional, TypeVar

import nats.errors
from nats.aio.client import Client as NATS

T = TypeVar("T")
PAUSE_MIN, PAUSE_MAX = 0.2, 5.0


class Status(enum.IntEnum):
    """How a request ended. The numbers are the engine's."""

    OK = 0
    NOMEM = 1
    INVALID = 2
    LIMIT = 3
    CORRUPT = 4
    NONDETERMINISM = 5
    CANCELLED = 6
    APP = 7
    CONFLICT = 8
    UNAVAILABLE = 9
    NOT_FOUND = 10
    TIMEOUT = 11
    UNSUPPORTED = 12
    DENIED = 13
    FENCED = 14
    LATER = 15


class Error(Exception):
    """What a gateway answered; UNAVAILABLE or TIMEOUT also when no final answer came in time."""

    def __init__(self, status: int, text: str, answer: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(f"{text} (status {status})")
        self.status = status
        self.text = text
        self.answer = answer or {}


class NoAnswer(Exception):
    """No answer in time, or one that cannot be read."""


class NoResponders(NoAnswer):
    """No gateway answers on this subject."""


class Backoff:
    """Pauses that double."""

    def __init__(self) -> None:
        self._pause = 0.0

    def reset(self) -> None:
        self._pause = 0.0

    def next(self) -> float:
        self._pause = min(max(2 * self._pause, PAUSE_MIN), PAUSE_MAX)
        return self._pause

    async def wait(self, *events: asyncio.Event) -> None:
        """Pauses, or until one of the events is set."""
        await race(asyncio.sleep(self.next()), *events)


async def race(work: Awaitable[T], *events: asyncio.Event) -> Optional[T]:
    """The result of the work, or None, and the work is cancelled, when an event is set before."""
    task = asyncio.ensure_future(work)
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait([task, *waits], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for one in (task, *waits):
            one.cancel()


async def call(nc: NATS, subject: str, request: Dict[str, Any], timeout: float, sender: Mapping[str, str] = {}) -> Dict[str, Any]:
    """One request. Raises Error for a status that is not 0, else NoAnswer. Nothing is sent while there is no connection:
    what waits in the connection's buffer would arrive when nobody waits for its answer any more."""
    if not nc.is_connected:
        raise NoAnswer("not connected")
    data = json.dumps(request).encode()
    headers = {"Content-Type": "application/json", **sender}
    try:
        reply = await asyncio.wait_for(nc.request(subject, data, timeout=timeout, headers=headers), timeout)
    except nats.errors.NoRespondersError:
        raise NoResponders(f"no gateway answers on {subject}") from None
    except nats.errors.MaxPayloadError:
        raise Error(Status.INVALID, f"a request of {len(data)} bytes is too large for the server") from None
    except nats.errors.BadSubjectError:
        raise Error(Status.INVALID, f"not a subject: {subject}") from None
    except (nats.errors.Error, asyncio.TimeoutError, OSError) as error:
        raise NoAnswer(f"no answer: {error!r}") from None
    try:
        answer = json.loads(reply.data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise NoAnswer(f"the answer cannot be read: {reply.data[:80]!r}")
    status = number(answer, "status")
    if status != Status.OK:
        raise Error(status, text(answer, "text"), answer)
    return answer


def named(*names: str) -> None:
    """Raises Error unless all are names, as orchestrations, events, queries, queues and namespaces have: they are parts of subjects."""
    for name in names:
        if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
            raise Error(Status.INVALID, f"{name[:80]!r} is no name: [A-Za-z0-9_-]{{1,64}}")


def answered(error: Optional[BaseException]) -> Optional[int]:
    """The status that a gateway gave; None without an answer."""
    if error is None:
        return Status.OK
    return error.status if isinstance(error, Error) else None


def unknown(error: BaseException) -> bool:
    """Whether the gateway does not know the session."""
    return isinstance(error, NoResponders) or answered(error) == Status.NOT_FOUND


def refused(error: BaseException) -> bool:
    """Whether the caller is in error: trying again would not help."""
    return answered(error) in (Status.INVALID, Status.DENIED)


# ---- fields of the JSON mapping: absent ones are empty or 0, 64-bit numbers may be strings ----


def number(message: Dict[str, Any], name: str) -> int:
    value = message.get(name)
    if value is None:
        return 0
    try:
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise NoAnswer(f"{name} is no number: {value!r:.80}")


def text(message: Dict[str, Any], name: str) -> str:
    value = message.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NoAnswer(f"{name} is no text: {value!r:.80}")
    return value


def octets(message: Dict[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(text(message, name))
    except (binascii.Error, ValueError):
        raise NoAnswer(f"{name} is not in base64") from None


def items(message: Dict[str, Any], name: str, kind: type) -> List[Any]:
    value = message.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise NoAnswer(f"{name} is no list as expected: {value!r:.80}")
    return value


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
