"""The golden messages of proto/golden, read and written as this client does: docs/wire.md, "Golden bytes"."""

import asyncio
import base64
import json
import re
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import thole
from thole import _call, client, worker
from thole.task import Held, read_task

GOLDEN = Path(__file__).resolve().parents[3] / "proto" / "golden" / "gateway.json"
LEFT_OUT = {"StartInstance": {"traceparent", "tracestate"}}  # what this client does not send
# In seconds, as floats, before they are sent; never 0.
TIMES = {"NextTasks": "waitMs", "CloseSession": "limitMs", "WaitInstance": "waitMs"}


def lines():
    for line in json.loads(GOLDEN.read_text(encoding="utf-8")):
        yield line["name"], line["type"].replace("thole.v1.", ""), line["json"]


def plain(value, without=()):
    """Without the members that have their defaults."""
    if isinstance(value, list):
        return [plain(item, without) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: plain(item, without) for key, item in value.items()
            if key not in without and (item == {} or not (item in ("", "0", []) or item is None or item is False or item == 0))}


class Gateway:
    """The connection: keeps the request, gives the answer."""

    is_connected, max_payload, stats = True, 1 << 20, {"reconnects": 0}

    def __init__(self, answer=None):
        self.answer, self.subject, self.sent, self.answered = answer or {}, "", {}, lambda: None

    inbox = ""

    def new_inbox(self):
        return self.inbox

    async def subscribe(self, subject, cb):
        return SimpleNamespace(subject=subject)

    async def request(self, subject, data, timeout, headers):
        self.subject, self.sent = subject, json.loads(data)
        self.answered()
        return SimpleNamespace(data=json.dumps(self.answer).encode())


def octets(message, name):
    return base64.b64decode(message.get(name, ""))


class Work:
    """A worker with a session, whose loops do not run."""

    def __init__(self, nc, **more):
        self.worker = thole.Worker(nc, namespace="n", queue="q")
        self.worker.loop = asyncio.get_running_loop()
        self.worker.halt = asyncio.Event()
        self.worker.__dict__.update(more)
        self.session = self.worker.session = worker.Session(self.worker)
        self.session.subject, self.worker.lease = "s", 3600.0

    def hold(self, claim, beat=(0, b"")):
        self.told = []
        task = SimpleNamespace(_beat=beat, activity="a", instance="i")
        self.worker.held[claim] = SimpleNamespace(claim=claim, beaten=0, task=task, delivery=None, runner=asyncio.Future(),
                                                  told={}, refused=False, sent=False, fire=lambda why: self.told.append(why))


async def outcome(message):
    """What a handler did, told as this client tells it."""
    why = message.get("failure", {})

    async def run(task):
        if message.get("heartbeat"):
            task.heartbeat(octets(message, "details"))
        if message.get("cancelled"):
            task.cancel = "requested"
            raise asyncio.CancelledError
        if "failure" in message:
            raise thole.Failure(why.get("text", ""), why.get("type", ""), why.get("final", False))
        if message.get("later"):
            return thole.LATER
        return octets(message, "output")

    held = Held(message.get("claim", ""), read_task(_call.Message({"token": "t"}), 8), run)
    await asyncio.wait([held.runner])
    return held.outcome(1 << 20)


class Requests(unittest.IsolatedAsyncioTestCase):
    async def ask(self, kind, want):
        """Has the client make this request; None: it cannot be had so."""
        nc = Gateway({"state": "completed", "subject": "s", "session": "s", "leaseMs": 1000})
        calls = thole.Client(nc)
        instance, reason = want.get("instance", ""), want.get("reason", "")
        with mock.patch.object(client.secrets, "token_hex", lambda n: want.get("requestId", "")):
            if kind == "StartInstance":
                event = "e" if "eventData" in want else None
                await calls.start("o", octets(want, "input"), instance=instance or None, version=want.get("version", 0),
                                  require_known=want.get("requireKnown", False), event=event, event_data=octets(want, "eventData"))
            elif kind == "SignalInstance":
                await calls.signal(instance, "e", octets(want, "data"))
            elif kind == "EndInstance":
                await calls.cancel(instance, reason)
                cancel = nc.sent
                await calls.terminate(instance, reason)
                self.assertEqual(cancel, nc.sent)
            elif kind == "QueryInstance":
                await calls.query(instance, "q", octets(want, "input"))
            elif kind == "WaitInstance":
                with mock.patch.object(client, "WAIT_SECONDS", want["waitMs"] / 1000):
                    await calls.wait(instance, timeout=want["waitMs"] / 1000 + (0 if want.get("explain") else 60))
                if want.get("explain"):
                    nc.sent["waitMs"] = want["waitMs"]  # a moment less is left
            elif kind == "DescribeInstance":
                await calls.describe(instance)
            elif kind == "ListInstances":
                fields = {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): value for key, value in want.items()}
                numbers = {key: int(value) for key, value in fields.items() if key.endswith("_ms")}
                await calls.list(**{**fields, **numbers})
                nc.sent = {re.sub("_(.)", lambda m: m[1].upper(), key): str(value) if key.endswith("_ms") else value for key, value in nc.sent.items()}
            elif kind == "CompleteActivity" and "failure" in want:
                await calls.fail_activity(want["token"], want["failure"]["text"], want["failure"]["type"])
                nc.sent["failure"]["final"] = True  # it does not count
            elif kind == "CompleteActivity":
                await calls.complete_activity(want.get("token", ""), octets(want, "output"))
            elif kind == "OpenSession":
                made = Work(nc, name=want.get("worker", ""), slots=want.get("slots", 0), handlers=dict.fromkeys(want.get("activities", [])),
                            resume=want.get("resume", ""))
                nc.inbox = want.get("inbox", "")
                made.worker.lease_end = made.worker.loop.time() + 1
                for claim in want.get("claims", []):
                    made.hold(claim)
                with mock.patch.object(worker.socket, "gethostname", lambda: want.get("host", "")):
                    await made.session.open()
            elif kind == "NextTasks":
                with mock.patch.object(worker, "NEXT_WAIT", want["waitMs"] / 1000):
                    made = Work(nc, slots=want["max"])
                    nc.answered = made.worker.halt.set
                    await made.session.take_tasks()
            elif kind == "CloseSession":
                made = Work(nc)
                made.worker.loop, made.worker.stop_by = SimpleNamespace(time=lambda: 0.0), (want["limitMs"] + 0.5) / 1000
                with mock.patch.object(_call.Backoff, "next", lambda self: 0):
                    await made.session.close()
        return nc.sent

    async def test_requests(self):
        seen = set()
        for name, kind, want in lines():
            if TIMES.get(kind) and not 0 < want.get(TIMES[kind], 0) < 2**31:
                continue
            if kind in ("OpenSession", "NextTasks", "CloseSession", "StartInstance", "SignalInstance", "EndInstance", "QueryInstance", "WaitInstance",
                        "DescribeInstance", "ListInstances", "CompleteActivity"):
                sent = await self.ask(kind, want)
                self.assertEqual(plain(sent), plain(want, LEFT_OUT.get(kind, ())), name)
                seen.add(kind)
        self.assertEqual(len(seen), 11)

    async def test_heartbeats(self):
        for name, kind, want in lines():
            if kind != "RenewTasks":
                continue
            made = Work(Gateway())
            for number, one in enumerate(want.get("running", [])):
                made.hold(str(number), (1, octets(one, "details")) if one.get("heartbeat") else (0, b""))
                made.worker.held[str(number)].claim = one.get("claim", "")
            self.assertEqual(plain({"running": made.worker.running()[0]}), plain(want), name)

    async def test_outcomes(self):
        for name, kind, want in lines():
            if kind == "Outcome" and len(want.keys() & {"output", "failure", "cancelled", "later"}) == 1 and want.get("failure") != {}:
                self.assertEqual(plain(await outcome(want)), plain(want), name)


class Answers(unittest.IsolatedAsyncioTestCase):
    def task(self, name, want):
        task = read_task(_call.Message(want), 8)
        got = {"claim": want.get("claim", ""), "activity": task.activity, "instance": task.instance, "execution": str(task.execution),
               "activityId": str(task.activity_id), "tryNumber": task.try_number, "attempt": task.attempt, "input": _call.encoded(task.input),
               "key": task.key, "orchestration": task.orchestration, "version": task.version, "details": _call.encoded(task.details),
               "queue": task.queue, "traceparent": task.traceparent, "tracestate": task.tracestate,
               "token": task.token}
        self.assertEqual(plain(got), plain(want, ("timeoutMs",)), name)
        self.assertEqual(task.timeout, int(want["timeoutMs"]) / 1000 if "timeoutMs" in want else None, name)

    async def test_tasks(self):
        for name, kind, want in lines():
            if kind == "Task":
                self.task(name, want)
            elif kind == "Tasks" and not want.get("status"):
                nc = Gateway(want)
                made = Work(nc)
                nc.answered, got = made.worker.halt.set, []
                with mock.patch.object(made.worker, "begin", lambda message: got.append((message.claim, message.activity))):
                    await made.session.take_tasks()
                self.assertEqual(got, [(one.get("claim", ""), one.get("activity", "")) for one in want.get("tasks", [])], name)

    async def test_notices(self):
        for name, kind, want in lines():
            if kind not in ("Notice", "TasksRenewed"):
                continue
            made = Work(Gateway())
            notices = want.get("cancelled", []) if kind == "TasksRenewed" else [want]
            claims, gone = {one.get("claim", "") for one in notices}, want.get("gone", [])
            for claim in claims | set(gone):
                made.hold(claim)
            told = made.told = []
            if kind == "TasksRenewed":
                answer = _call.Message({**want, "status": 0})
                with mock.patch.object(worker.log, "disabled", True):
                    made.worker.renewed(made.worker.loop.time(), answer.cancelled, answer.gone)
                self.assertEqual(set(made.worker.held), claims - set(gone), name)
            else:
                await made.session.notice_arrived(SimpleNamespace(data=json.dumps(want).encode()))
            self.assertEqual(told[:len(notices)],
                             [thole.Cancelled(one.get("kind", ""), one.get("reason", ""), one.get("graceMs", 0) / 1000) for one in notices], name)

    async def test_session(self):
        for name, kind, want in lines():
            if kind != "SessionOpened" or "subject" not in want or want.get("status"):
                continue
            made = Work(Gateway(want))
            for claim in [*want.get("gone", []), "other"]:
                made.hold(claim)
            with mock.patch.object(worker.log, "disabled", True):
                self.assertTrue(await made.session.open())
            self.assertEqual((made.session.subject, made.worker.resume, made.worker.lease, made.session.renew_every, made.worker.payload_max),
                             (want["subject"], want["session"], want["leaseMs"] / 1000, want["renewMs"] / 1000, int(want["payloadMax"])), name)
            self.assertEqual(list(made.worker.held), ["other"])

    def instance(self, got, want, hindrances, name):
        told = {re.sub("_(.)", lambda m: m[1].upper(), key): value for key, value in vars(got).items() if key != "hindrances"}
        self.assertEqual(plain({key: str(value) for key, value in told.items()}), plain({key: str(value) for key, value in want.items()}), name)
        self.assertEqual([(one.kind, one.text, one.next_step) for one in got.hindrances],
                         [(one.get("kind", ""), one.get("text", ""), one.get("nextStep", "")) for one in hindrances], name)

    async def test_calls(self):
        for name, kind, want in lines():
            calls = thole.Client(Gateway(want))
            make = {"InstanceStarted": lambda: calls.start("o"), "QueryResult": lambda: calls.query("i", "q"), "Accepted": lambda: calls.cancel("i"),
                    "InstanceOutcome": lambda: calls.wait("i", timeout=0.01), "InstanceDescription": lambda: calls.describe("i"),
                    "InstanceList": lambda: calls.list()}.get(kind)
            if make is None:
                continue
            status = want.get("status", 0)
            ends = kind == "InstanceOutcome" and "state" in want and status in (0, thole.Status.APP, thole.Status.CANCELLED)
            if kind == "InstanceOutcome" and not ends and status == 0:
                continue  # no answer
            if status and not ends:
                with self.assertRaises(thole.Error, msg=name) as raised:
                    await make()
                self.assertEqual((raised.exception.status, raised.exception.text), (status, want.get("text", "")), name)
                if status == thole.Status.TIMEOUT:
                    self.assertEqual((raised.exception.state, raised.exception.reason, raised.exception.next_step),
                                     (want.get("state", ""), want.get("reason", ""), want.get("nextStep", "")), name)
            elif kind == "InstanceDescription":
                self.instance(await make(), want.get("info", {}), want.get("hindrances", []), name)
            elif kind == "InstanceList":
                for got, one in zip(await make(), want.get("instances", [])):
                    self.instance(got, one, [], name)
            elif ends:
                got = await make()
                self.assertEqual((got.state, got.status, got.text, got.error_type),
                                 (want["state"], status, want.get("text", ""), want.get("errorType", "")), name)
                if status == 0:
                    self.assertEqual(got.output, octets(want, "output"), name)
            elif kind == "InstanceStarted":
                self.assertEqual(await make(), want.get("instance", ""), name)
            elif kind == "QueryResult":
                self.assertEqual(await make(), octets(want, "output"), name)
            else:
                await make()

    def test_every_message(self):
        known = ("OpenSession SessionOpened NextTasks Tasks Task RenewTasks RunningTask TasksRenewed Notice CompleteTasks Outcome TaskFailure "
                 "TasksCompleted OutcomeResult CloseSession SessionClosed StartInstance InstanceStarted SignalInstance EndInstance Accepted "
                 "QueryInstance QueryResult WaitInstance InstanceOutcome DescribeInstance InstanceDescription InstanceInfo Hindrance ListInstances "
                 "InstanceList CompleteActivity").split()
        self.assertEqual({kind for _, kind, _ in lines()}, set(known))


if __name__ == "__main__":
    unittest.main()
