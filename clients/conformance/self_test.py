"""Shows that the kit finds what it is for: the Python client is broken in one way after the other, and cases must fail.

    python3 self_test.py CONFORMANCE [BREAKAGE...]

PYTHON must have the client installed. CONFORMANCE is the built kit. Prints a line for each breakage and the number of those that
were not found, which is the exit code's. With CONF_BREAK in the environment this program is the driver that is broken so."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

BREAKAGES = {}  # name: (function that breaks the client, cases that must fail)


def breakage(*cases):
    def add(function):
        BREAKAGES[function.__name__] = (function, cases)
        return function

    return add


@breakage("echo", "client-start")
def no_header(thole, session, call):
    import nats.aio.client as nats

    real = nats.Client.request

    async def request(self, subject, payload=b"", timeout=0.5, old_style=False, headers=None):
        return await real(self, subject, payload, timeout)

    nats.Client.request = request


@breakage("next-max", "slots")
def max_is_slots(thole, session, call):
    thole.Worker.free = lambda self: self.slots


@breakage("duplicate-in-hand")
def runs_duplicates_in_hand(thole, session, call):
    real = session.Session.next

    async def next(self, free):
        held, self.held = self.held, {}
        try:
            await real(self, free)
        finally:
            self.held = {**held, **self.held}

    session.Session.next = next


@breakage("duplicate-completed")
def runs_completed_ones(thole, session, call):
    session.Session.remember = lambda self, claim: None


@breakage("renew-uncompleted")
def forgets_what_ended(thole, session, call):
    real = session.Session.running

    def running(self):
        listed, beats = real(self)
        return [e for e in listed if not (self.held[e["claim"]].handler and self.held[e["claim"]].handler.done())], beats

    session.Session.running = running


@breakage("renew-idle", "session-silent-held")
def renews_seldom(thole, session, call):
    real = session.Session.open

    async def open(self, timeout):
        await real(self, timeout)
        self.renew_every = self.lease - 0.1

    session.Session.open = open


@breakage("notice-inbox")
def deaf_inbox(thole, session, call):
    async def notice_arrived(self, message):
        pass

    session.Session.notice_arrived = notice_arrived


@breakage("notice-renew")
def deaf_renewals(thole, session, call):
    real = session.Session.renewed
    session.Session.renewed = lambda self, cancelled, gone, beats: real(self, [], gone, beats)


@breakage("gone")
def ignores_gone(thole, session, call):
    real = session.Session.renewed
    session.Session.renewed = lambda self, cancelled, gone, beats: real(self, cancelled, [], beats)


@breakage("notice-first")
def last_notice_counts(thole, session, call):
    import thole.task as task

    def fire(self, why):
        self.cancel = why
        self._event.set()
        return True

    task.Task._fire = fire


@breakage("notice-inbox", "notice-renew")
def cancelled_is_a_failure(thole, session, call):
    real = session.Held.outcome

    def outcome(self, output, error):
        made = real(self, output, error)
        return self.failed("cancelled") if made.get("cancelled") else made

    session.Held.outcome = outcome


@breakage("complete-unanswered", "complete-unavailable")
def completes_once(thole, session, call):
    async def complete(self, held, outcome):
        try:
            await self.call("complete", {"outcomes": [outcome]}, 10)
        except Exception:
            pass

    session.Session.complete = complete


@breakage("complete-fenced")
def repeats_what_is_refused(thole, session, call):
    async def complete(self, held, outcome):
        while not held.dropped.is_set():
            answer = await self.call("complete", {"outcomes": [outcome]}, 10)
            if not answer["results"][0].get("status"):
                return
            await asyncio.sleep(0.2)

    session.Session.complete = complete


@breakage("gone", "session-not-found-held", "freeze-long")
def completes_what_is_lost(thole, session, call):
    async def complete(self, held, outcome):
        try:
            await call.call(self.worker.nc, self.subject + ".complete", {"outcomes": [outcome]}, 10)
        except Exception:
            pass

    def lose(self, held):
        held.fire(thole.Cancelled("lease_lost"))
        self.held.pop(held.claim, None)

    session.Session.complete, session.Session.lose = complete, lose


@breakage("session-silent-held", "session-not-found-held", "freeze-long")
def no_lease(thole, session, call):
    real = session.Session.over
    session.Session.over = lambda self, why: None if why.startswith("no renewal") else real(self, why)
    session.Session.expired = lambda self: self.ended.is_set()


@breakage("session-heals")
def lost_too_early(thole, session, call):
    real = session.Session.call

    async def one(self, operation, request, timeout):
        try:
            return await real(self, operation, request, timeout)
        except call.Error as error:
            if error.status == 10:
                self.over("impatient")
            raise

    session.Session.call = one


@breakage("session-unavailable")
def forgets_the_old_session(thole, session, call):
    session.Session.retire = lambda self: self.over("retired")


@breakage("session-same-claim")
def one_table_of_claims(thole, session, call):
    real = session.Session.notify

    def notify(self, notice):
        for other in list(self.worker.sessions):
            real(other, notice)

    session.Session.notify = notify


@breakage("open-unavailable", "open-no-gateway", "next-error", "session-busy-loop")
def busy_loop(thole, session, call):
    call.Backoff.next = lambda self: 0.001


@breakage("heartbeat-once")
def repeats_heartbeats(thole, session, call):
    real = session.Session.renewed
    session.Session.renewed = lambda self, cancelled, gone, beats: real(self, cancelled, gone, [])


@breakage("heartbeat-repeated")
def forgets_heartbeats(thole, session, call):
    real = session.Session.running

    def running(self):
        listed, beats = real(self)
        for held, beat in beats:
            held.beaten = beat
        return listed, beats

    session.Session.running = running


@breakage("close-idle", "close-waits")
def ends_without_close(thole, session, call):
    async def close(self, limit):
        self.over("closed")

    session.Session.close = close


@breakage("close-crossing")
def drops_the_last_answer(thole, session, call):
    real = session.Session.close

    async def close(self, limit):
        if self.asking:
            self.asking.cancel()
        await real(self, limit)

    session.Session.close = close


@breakage("payload-binary", "client-query")
def base64_of_urls(thole, session, call):
    import base64

    import thole.client as client

    session.encoded = client.encoded = lambda data: base64.urlsafe_b64encode(data).decode()


@breakage("payload-too-big")
def sends_what_is_too_big(thole, session, call):
    real = session.Held.outcome

    def outcome(self, output, error):
        self.session.payload_max = 1 << 30
        return real(self, output, error)

    session.Held.outcome = outcome


@breakage("restart", "cut")
def gives_up_reconnecting(thole, session, call):
    import nats

    real = nats.connect

    async def connect(url, **options):
        return await real(url, allow_reconnect=False)

    nats.connect = connect


@breakage("panic")
def slot_leaks(thole, session, call):
    real = session.Held.run

    async def run(self):
        if self.task.activity == "panic":
            self.session.worker.release = lambda: None
        await real(self)

    session.Held.run = run


@breakage("client-start-repeated", "client-signal-repeated")
def new_request_id(thole, session, call):
    import secrets

    real = thole.Client._call

    async def one(self, operation, request, timeout, deadline):
        if "requestId" in request:
            request["requestId"] = secrets.token_hex(16)
        return await real(self, operation, request, timeout, deadline)

    thole.Client._call = one


@breakage("client-wait-again")
def wait_gives_up(thole, session, call):
    real = thole.Client.wait

    async def wait(self, instance, *, timeout=None):
        answer = await self._call("wait", {"instance": instance, "waitMs": 1000}, 5, None, self._sender())
        return thole.Outcome(0, answer["state"])

    thole.Client.wait = wait


@breakage("client-start-conflict", "client-denied")
def repeats_errors(thole, session, call):
    import thole.client as client

    async def request(self, operation, message, timeout):
        for _ in range(3):
            try:
                return await self._call(operation, message, 5, None, self._sender())
            except thole.Error as error:
                last = error
        raise last

    client.Client._request = request


@breakage("client-actor", "client-actor-default")
def actor_is_fixed(thole, session, call):
    real = thole.Client._sender
    thole.Client._sender = lambda self: {**real(self), "Thole-Actor": "somebody"}


@breakage("client-actor-refused")
def actor_is_not_checked(thole, session, call):
    thole.Client._sender = lambda self: {"Thole-Actor": self.actor, "Thole-Client": "thole"}


@breakage("client-trace")
def repetitions_have_no_trace(thole, session, call):
    real, seen = thole.Client._call, set()

    async def once(self, operation, request, timeout, deadline, sender):
        kept = {name: value for name, value in sender.items() if operation not in seen or name.startswith("Thole-")}
        seen.add(operation)
        return await real(self, operation, request, timeout, deadline, kept)

    thole.Client._call = once


@breakage("task-trace")
def tasks_have_no_trace(thole, session, call):
    import dataclasses

    real = session.read_task
    session.read_task = lambda message, payload_max: dataclasses.replace(real(message, payload_max), traceparent="")


def drive(name):
    import thole
    import thole._call
    import thole._session

    import conformance_driver

    BREAKAGES[name][0](thole, thole._session, thole._call)
    asyncio.run(conformance_driver.main())


def main(kit, names):
    missed = 0
    for name in names or BREAKAGES:
        cases = BREAKAGES[name][1]
        run = subprocess.run([kit, "--json", "--only", ",".join(cases), "--", sys.executable, __file__],
                             env={**os.environ, "CONF_BREAK": name}, stdout=subprocess.PIPE, timeout=300, check=False)
        results = {r["name"]: r for r in map(json.loads, run.stdout.splitlines())}
        passed = [case for case in cases if case not in results or results[case]["ok"]]
        reason = next((r["reason"] for r in results.values() if not r["ok"]), "")
        print(f"missed: {name}: {', '.join(passed)} passes" if passed else f"found: {name}: {reason[:100]}", flush=True)
        missed += bool(passed)
    print(f"{len(names or BREAKAGES) - missed} found, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    if "CONF_BREAK" in os.environ:
        drive(os.environ["CONF_BREAK"])
    elif len(sys.argv) < 2:
        sys.exit(__doc__)
    else:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
