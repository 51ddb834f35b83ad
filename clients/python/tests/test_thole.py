"""python3 -m unittest discover tests: what the conformance kit does not look at."""

import asyncio
import unittest
from types import SimpleNamespace

import thole
from thole import _call, _session
from thole.task import read_task


def told(output=None, error=None, notice=False):
    session = SimpleNamespace(payload_max=8)
    task = read_task({"activity": "a", "instance": "i"}, 8)
    if notice:
        task._fire(thole.Cancelled("requested"))
    held = SimpleNamespace(session=session, claim="c", task=task)
    held.failed = lambda *more: _session.Held.failed(held, *more)
    made = _session.Held.outcome(held, output, error)
    failure = made.get("failure")
    if failure:
        return ("final " if failure["final"] else "failure ") + failure["type"] + " " + failure["text"]
    return "cancelled" if made.get("cancelled") else "output " + made["output"]


class Outcomes(unittest.TestCase):
    def test_outcomes(self):
        _session.log.disabled = True
        for row in [
            ("output YWJj", b"abc"),
            ("output ", None),
            ("output YWJj", b"abc", None, True),
            ("final too_large the output has 9 bytes, the gateway takes 8", b"x" * 9),
            ("failure TypeError the handler returned str, not bytes", "text"),
            ("failure ValueError oh", None, ValueError("oh")),
            ("failure ValueError ValueError", None, ValueError()),
            ("failure CancelledError CancelledError", None, asyncio.CancelledError()),
            ("cancelled", None, asyncio.CancelledError(), True),
            ("cancelled", None, ValueError("oh"), True),
            ("final a_b__ no", None, thole.Failure("no", "a b/ü", True)),
            ("failure  no", None, thole.Failure("no"), True),
        ]:
            self.assertEqual(told(*row[1:]), row[0])

    def test_fields(self):
        self.assertEqual(_call.number({"a": "18446744073709551615"}, "a"), 2**64 - 1)
        self.assertEqual([_call.number({}, "a"), _call.text({"a": None}, "a"), _call.octets({}, "a"), _call.items({}, "a", str)], [0, "", b"", []])
        for read in (lambda: _call.number({"a": "x"}, "a"), lambda: _call.number({"a": True}, "a"), lambda: _call.text({"a": 7}, "a"),
                     lambda: _call.octets({"a": "x"}, "a"), lambda: _call.items({"a": 7}, "a", str), lambda: _call.items({"a": [7]}, "a", str)):
            self.assertRaises(_call.NoAnswer, read)

    def test_heartbeat(self):
        task = read_task({}, 8)
        task.heartbeat(b"12345678")
        with self.assertRaises(thole.Error):
            task.heartbeat(b"123456789")
        self.assertEqual(task._beat, (1, b"12345678"))

    def test_the_first_notice_counts(self):
        task = read_task({}, 8)
        self.assertTrue(task._fire(thole.Cancelled("requested")))
        self.assertFalse(task._fire(thole.Cancelled("timeout")))
        self.assertEqual(task.cancel.kind, "requested")
        self.assertRaises(thole.TaskCancelled, task.check)

    def test_pauses_double(self):
        pause = _call.Backoff()
        self.assertEqual([pause.next() for _ in range(7)], [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])


if __name__ == "__main__":
    unittest.main()
