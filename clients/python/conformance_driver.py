"""What clients/conformance tests this client with: its README.md says what it must do. CONF_HANDLERS=threads: no handler is async."""

import asyncio
import base64
import json
import logging
import os
import signal
import sys
import threading
import time

import nats

import thole

TELLING = threading.Lock()  # print() writes a line and its end apart


def put(line):
    with TELLING:
        print(json.dumps(line), flush=True)


def tell(task):
    why = task.cancel
    event = {"event": "cancelled", "instance": task.instance, "kind": why.kind, "reason": why.reason, "grace_ms": round(why.grace * 1000)}
    put(event)


async def pause(task, seconds):
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        tell(task)
        raise


async def sleep(task):
    await pause(task, int(task.input) / 1000)
    return task.input


async def stubborn(task):
    end = time.monotonic() + int(task.input) / 1000
    while time.monotonic() < end:
        try:
            await asyncio.sleep(end - time.monotonic())
        except asyncio.CancelledError:
            pass
    return b"done"


async def beat(task):
    for i in range(1, int(task.input) + 1):
        task.heartbeat(str(i).encode())
        await pause(task, 0.05)
    return task.input


def fail(task):
    raise thole.Failure("no", "declined", final=task.input == b"final")


def throw(task):
    raise ValueError(task.input.decode(errors="surrogateescape"))


def notify(task):
    task.heartbeat(task.input)
    raise thole.Failure("no", "declined")


def add_one(task, value):
    return {"n": value["n"] + 1, "text": value["text"] + "!"}


async def add_one_on_loop(task, value):
    return add_one(task, value)


def later(task):
    put({"event": "later", "instance": task.instance, "token": task.token})
    return thole.LATER


async def panic(task):
    raise SystemExit("on purpose")


def thread_pause(task, seconds):
    if task.wait(seconds):
        tell(task)
        task.check()


def thread_sleep(task):
    thread_pause(task, int(task.input) / 1000)
    return task.input


def thread_stubborn(task):
    time.sleep(int(task.input) / 1000)
    return b"done"


def thread_beat(task):
    for i in range(1, int(task.input) + 1):
        task.heartbeat(str(i).encode())
        thread_pause(task, 0.05)
    return task.input


def thread_panic(task):
    return {}["on purpose"]


async def work(nc):
    threads = os.environ.get("CONF_HANDLERS") == "threads"
    worker = thole.Worker(nc, namespace=os.environ["THOLE_NAMESPACE"], queue=os.environ["THOLE_QUEUE"], name="conf-worker", slots=4,
                          close_limit=3.0)
    worker.register("echo", lambda task: task.input)
    worker.register("bytes", lambda task: task.input[::-1])
    worker.register("big", lambda task: b"x" * int(task.input))
    worker.register("fail", fail)
    worker.register("throw", throw)
    worker.register("notify", notify)

    async def hangup(task):
        await nc.close()

    worker.register("hangup", hangup)
    worker.register("resume", lambda task: task.details)
    worker.register("key", lambda task: task.key.encode())
    worker.register("trace", lambda task: f"{task.traceparent} {task.tracestate}".encode())
    worker.register("json", thole.json_handler(add_one if threads else add_one_on_loop))
    worker.register("later", later)
    worker.register("deadline", lambda task: b"none" if task.timeout is None else str(round(task.timeout * 1000)).encode())
    worker.register("panic", thread_panic if threads else panic)
    worker.register("sleep", thread_sleep if threads else sleep)
    worker.register("stubborn", thread_stubborn if threads else stubborn)
    worker.register("beat", thread_beat if threads else beat)

    def stop():
        worker.stop()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    await worker.run()


async def command(client, c):
    op, instance, data = c["op"], c.get("instance", ""), base64.b64decode(c.get("input", ""))
    limit = {"timeout": c["timeout_ms"] / 1000} if c["timeout_ms"] else {}
    result = {"instance": instance}
    if op == "start":
        result["instance"] = await client.start(c["orchestration"], data, instance=instance or None, version=c.get("version", 0),
                                                require_known=c.get("require_known", False), event=c.get("event"),
                                                event_data=base64.b64decode(c.get("event_data", "")), **limit)
    elif op == "signal":
        result["note"] = await client.signal(instance, c["event"], data, **limit)
    elif op == "query":
        result["output"] = await client.query(instance, c["query"], data, **limit)
    elif op == "wait":
        o = await client.wait(instance, **limit)
        result.update(status=o.status, text=o.text, state=o.state, error_type=o.error_type, output=o.output)
    elif op == "describe":
        found = await client.describe(instance, **limit)
        result.update(state=found.state, reason=found.reason, next_step="".join(each.next_step for each in found.hindrances[:1]))
    elif op == "list":
        filters = {name: c[name] for name in ("states", "orchestration", "id_prefix", "parent", "limit") if name in c}
        if "behind_instance" in c:
            first = thole.Instance(c["behind_instance"], "", 0, 0, "", "", "", "", "", c["behind_created_ms"], 0, 0, 0, 0)
            filters["behind"] = first
        result["instances"] = [each.instance for each in await client.list(**filters, **limit)]
    elif op == "complete":
        await client.complete_activity(c["token"], base64.b64decode(c.get("output", "")), **limit)
    elif op == "fail":
        await client.fail_activity(c["token"], c["text"], c["error_type"], **limit)
    else:
        result["note"] = await getattr(client, op)(instance, c.get("reason", ""), **limit) or ""
    return result


async def control(nc):
    name = {"name": os.environ["CONF_CLIENT"]} if os.environ.get("CONF_CLIENT") else {}
    if os.environ.get("CONF_WAIT_MS"):
        name["wait_limit"] = int(os.environ["CONF_WAIT_MS"]) / 1000
    client = thole.Client(nc, namespace=os.environ["THOLE_NAMESPACE"], actor=os.environ.get("CONF_ACTOR", ""),
                          vouched_actor=os.environ.get("CONF_VOUCHED", ""), **name)
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        c = json.loads(line)
        result = {"status": 0}
        client.trace = lambda carrier: carrier.update({name: c[name] for name in ("traceparent", "tracestate") if name in c})
        try:
            result.update(await command(client, c))
        except thole.Error as error:
            result.update(status=int(error.status), text=error.text, state=error.state, reason=error.reason, next_step=error.next_step)
        result["output"] = base64.b64encode(result.get("output", b"")).decode()
        put({"id": c["id"], **result})


async def quiet(error):
    logging.getLogger("nats").warning("%r", error)


async def main():
    nc = await nats.connect(os.environ["NATS_URL"], max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=quiet)
    try:
        await (control if os.environ.get("CONF_MODE") == "client" else work)(nc)
    except thole.Error as error:
        sys.exit(f"error: {error.text}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    asyncio.run(main())
