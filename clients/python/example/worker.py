"""Serves the activities of the orchestration checkout (examples/checkout.c): THOLE_NATS_URL, THOLE_NAMESPACE, THOLE_QUEUE."""

import asyncio
import logging
import os
import signal

import nats

import thole


def field(text: bytes, key: str, fallback: int) -> int:
    """The number behind "key=" in "order=17;pay_ms=50"."""
    pairs = dict(part.split("=", 1) for part in text.decode().split(";") if "=" in part)
    return int(pairs.get(key, fallback))


def reserve(task: thole.Task) -> bytes:  # not async: it runs in a thread
    return b"goods-%d" % field(task.input, "order", 0)


async def charge(task: thole.Task) -> bytes:
    """A card that takes its time. A real one would send task.key along, so that it is charged once however often this runs."""
    if task.try_number <= field(task.input, "busy", 0):
        raise RuntimeError("the bank does not answer")
    try:
        await asyncio.sleep(field(task.input, "pay_ms", 50) / 1000)
    except asyncio.CancelledError:
        logging.info("charge of %s is cancelled: %s", task.instance, task.cancel)
        raise
    if field(task.input, "declined", 0):
        raise thole.Failure("the card was declined", "declined", final=True)
    return b"charged"


def ship(task: thole.Task) -> bytes:
    return b"parcel with " + task.input


def undo(task: thole.Task) -> bytes:
    """Must do nothing for what was never done. It only says that it was here."""
    return f"{task.activity} of order {field(task.input, 'order', 0)}".encode()


async def main() -> None:
    nc = await nats.connect(os.environ.get("THOLE_NATS_URL", "nats://127.0.0.1:4222"), max_reconnect_attempts=-1)
    worker = thole.Worker(nc, namespace=os.environ.get("THOLE_NAMESPACE", "default"), queue=os.environ.get("THOLE_QUEUE", "default"))
    for name, handler in (("reserve", reserve), ("charge", charge), ("ship", ship), ("release", undo), ("refund", undo)):
        worker.register(name, handler)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, worker.stop)
    await worker.run()
    await nc.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
