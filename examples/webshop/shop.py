"""The web shop: it publishes what customers do as CloudEvents, and listens to what the orders emit.

shop.py setup: makes the stream of its events. shop.py NUMBER PAY_MS [CANCEL_AFTER_MS]: an order; the customer withdraws it after so long. Ends when it is shipped or cancelled.
"""

import asyncio
import json
import os
import sys
import time

import nats


async def publish(js, kind: str, order: int, data: dict) -> None:
    """Until the stream has it: the same id each time, so it is one event."""
    headers = {"ce-specversion": "1.0", "ce-id": f"{order}-{kind}", "ce-source": "/webshop",
               "ce-type": f"com.example.order.{kind}", "Content-Type": "application/json"}
    while True:
        try:
            await js.publish(f"shop.order.{kind}", json.dumps(data).encode(), headers=headers, timeout=2)
            return
        except (nats.errors.Error, nats.js.errors.Error):
            await asyncio.sleep(0.1)


async def main(order: int, pay_ms: int, cancel_after_ms: "int | None") -> None:
    nc = await nats.connect(os.environ["THOLE_NATS_URL"], max_reconnect_attempts=-1)
    js = nc.jetstream()
    ends = asyncio.get_running_loop().create_future()

    async def heard(msg) -> None:
        event = json.loads(msg.data)  # structured mode: the whole CloudEvent
        kind = event["type"].rsplit(".", 1)[1]
        print(f"order {order}: {kind}", flush=True)
        if kind in ("shipped", "cancelled") and not ends.done():
            ends.set_result(kind)

    # From the stream of events: what was emitted while this process was not there comes, too.
    await js.subscribe(f"thole.default.event.order.order-{order}.ce.>", cb=heard, ordered_consumer=True)
    await publish(js, "placed", order, {"order": order, "pay_ms": pay_ms})
    if cancel_after_ms is not None:
        await asyncio.sleep(cancel_after_ms / 1000)
        print(f"withdrawing order-{order} at_us={time.time_ns() // 1000}", flush=True)
        await publish(js, "withdrawn", order, {"order": order})
    await ends
    await nc.close()


async def setup() -> None:
    nc = await nats.connect(os.environ["THOLE_NATS_URL"])
    await nc.jetstream().add_stream(name="SHOP", subjects=["shop.>"])
    await nc.close()


if sys.argv[1] == "setup":
    asyncio.run(setup())
else:
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
