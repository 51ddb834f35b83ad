"""Requests to a gateway: JSON, statuses, pauses."""

from __future__ import annotations

import asyncio
import base64
import enum
import json
import re
from typing import Any, Dict, Mapping

import nats.errors
from nats.aio.client import Client as NATS

PAUSE_MIN, PAUSE_MAX = 0.2, 5.0
NO_ANSWER = -1  # none in time, or one that cannot be read; not a status of a gateway


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
    """What a gateway answered; UNAVAILABLE or TIMEOUT also when no final answer came in time. TIMEOUT of Client.wait() has the `state` of
    the instance, the `reason` why it does not go on, if it is known, and the `next_step` that would help."""

    def __init__(self, status: int, text: str, state: str = "", reason: str = "", next_step: str = "") -> None:
        super().__init__(f"{text} (status {status})" + (next_step and f"; try: {next_step}"))
        self.status = status
        self.text = text
        self.state, self.reason, self.next_step = state, reason, next_step


class Backoff:
    """Pauses that double."""

    def __init__(self) -> None:
        self._pause = 0.0

    def reset(self) -> None:
        self._pause = 0.0

    def next(self) -> float:
        self._pause = min(max(2 * self._pause, PAUSE_MIN), PAUSE_MAX)
        return self._pause


# ---- messages of proto/gateway.proto in the JSON mapping ----


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is no text")
    return value


FIELDS = {  # name: (the JSON mapping's, default, how it is read)
    name: (re.sub("_(.)", lambda m: m[1].upper(), name), default, read)
    for names, default, read in (
        ("status lease_ms renew_ms grace_ms payload_max details_max execution activity_id try_number attempt version timeout_ms created_ms updated_ms turns"
         " open_activities open_timers", 0, int),
        ("text session subject gateway claim activity instance key orchestration queue traceparent tracestate kind reason state error_type"
         " token next_step detail custom_status parent note", "", _text),
        ("input details output", b"", base64.b64decode),
        ("tasks cancelled results hindrances instances", (), lambda value: [Message(item) for item in value]),
        ("gone", (), lambda value: [_text(item) for item in value]),
        ("info", None, lambda value: Message(value)),
    )
    for name in names.split()
}


class Message:
    """What a gateway sends, with names in snake_case; absent fields are empty or 0. ValueError, TypeError: it is none."""

    def __init__(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise ValueError(f"{message!r:.80} is no object")
        for name, (key, default, read) in FIELDS.items():
            value = message.get(key)
            setattr(self, name, default if value is None else read(value))


def parse(data: bytes) -> Message:
    try:
        return Message(json.loads(data))
    except (ValueError, TypeError, RecursionError) as error:
        return Message({"status": NO_ANSWER, "text": f"{data[:80]!r} cannot be read: {error}"})


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


async def call(nc: NATS, subject: str, request: Dict[str, Any], timeout: float, sender: Mapping[str, str] = {}) -> Message:
    """One request, and its answer. Nothing is sent while there is no connection: what waits in the connection's buffer would arrive
    when nobody waits for its answer any more."""
    if not nc.is_connected:
        return Message({"status": NO_ANSWER, "text": "not connected"})
    headers = {"Content-Type": "application/json", **sender}
    try:
        reply = await asyncio.wait_for(nc.request(subject, json.dumps(request).encode(), timeout=timeout, headers=headers), timeout)
    except (nats.errors.MaxPayloadError, nats.errors.BadSubjectError) as error:
        return Message({"status": Status.INVALID, "text": f"the request cannot be sent: {error!r}"})
    except nats.errors.NoRespondersError:
        return Message({"status": NO_ANSWER, "text": f"no gateway answers on {subject.rpartition('.gateway.')[0] or subject}"})
    except (nats.errors.Error, asyncio.TimeoutError, OSError) as error:
        return Message({"status": NO_ANSWER, "text": f"no answer: {error!r}"})
    return parse(reply.data)


def named(*names: str) -> None:
    """Raises Error unless all are names, as orchestrations, events, queries, queues and namespaces have: they are parts of subjects."""
    for name in names:
        if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
            raise Error(Status.INVALID, f"{name[:80]!r} is no name: [A-Za-z0-9_-]{{1,64}}")
