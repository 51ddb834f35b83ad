"""python3 -m unittest discover tests: what the conformance kit does not look at."""

import asyncio
import unittest

import thole
from thole import _call
from thole.task import Held, log, read_task


def told(output=None, error=None, notice=False):
    async def run(task):
        if error is not None:
            raise error
        return output

    async def outcome():
        held = Held("c", read_task(_call.Message({"activity": "a", "instance": "i"}), 8), run)
        if notice:
            held.task._fire(thole.Cancelled("requested"))
        await asyncio.wait([held.runner])
        return held.outcome(8)

    made = asyncio.run(outcome())
    failure = made.get("failure")
    if failure:
        return ("final " if failure["final"] else "failure ") + failure["type"] + " " + failure["text"]
    return "cancelled" if made.get("cancelled") else "output " + made["output"]


class Outcomes(unittest.TestCase):
    def test_outcomes(self):
        log.disabled = True
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
        got = _call.Message({"payloadMax": "18446744073709551615", "text": None, "future": [1], "gone": ["a"], "tasks": [{"claim": "c"}]})
        self.assertEqual((got.payload_max, got.text, got.output, got.gone, got.tasks[0].claim), (2**64 - 1, "", b"", ["a"], "c"))
        for text in ("", "null", "[]", "7", '{"status":"x"}', '{"text":7}', '{"output":"x"}', '{"gone":7}', '{"gone":[7]}', '{"tasks":[7]}', "["*100000):
            self.assertEqual(_call.parse(text.encode()).status, _call.NO_ANSWER, text[:80])

    def test_heartbeat(self):
        task = read_task(_call.Message({}), 8)
        task.heartbeat(b"12345678")
        with self.assertRaises(thole.Error):
            task.heartbeat(b"123456789")
        self.assertEqual(task._beat, (1, b"12345678"))

    def test_the_first_notice_counts(self):
        task = read_task(_call.Message({}), 8)
        self.assertTrue(task._fire(thole.Cancelled("requested")))
        self.assertFalse(task._fire(thole.Cancelled("timeout")))
        self.assertEqual(task.cancel.kind, "requested")
        self.assertRaises(thole.TaskCancelled, task.check)

    def test_pauses_double(self):
        pause = _call.Backoff()
        self.assertEqual([pause.next() for _ in range(7)], [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])


if __name__ == "__main__":
    unittest.main()
