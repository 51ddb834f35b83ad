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


def changed(kind, name, change):
    """An attribute whose values are changed when they are set."""
    kind_name = "_" + name
    setattr(kind, name, property(lambda self: getattr(self, kind_name), lambda self, value: setattr(self, kind_name, change(self, value))))


@breakage("echo", "client-start")
def no_header(thole, worker, call):
    import nats.aio.client as nats

    real = nats.Client.request

    async def request(self, subject, payload=b"", timeout=0.5, old_style=False, headers=None):
        return await real(self, subject, payload, timeout)

    nats.Client.request = request


# ---- tasks and slots ----


@breakage("next-max", "slots")
def max_is_slots(thole, worker, call):
    thole.Worker.taken = property(lambda self: 0, lambda self, value: None)


@breakage("duplicate-in-hand", "resume-duplicate")
def runs_duplicates_in_hand(thole, worker, call):
    real = thole.Worker.begin

    def begin(self, message):
        held = self.held.pop(message.claim, None)
        real(self, message)
        if held is not None:
            self.held[message.claim] = held

    thole.Worker.begin = begin
    thole.Worker.handled = lambda self, held: self.session.deliver(held)


@breakage("duplicate-completed", "resume-duplicate")
def runs_completed_ones(thole, worker, call):
    real = thole.Worker.begin

    def begin(self, message):
        self.ended.clear()
        real(self, message)

    thole.Worker.begin = begin


@breakage("panic")
def slot_leaks(thole, worker, call):
    real = thole.Worker.forget

    def forget(self, held):
        real(self, held)
        self.taken += held.task.activity == "panic"

    thole.Worker.forget = forget


@breakage("task-trace")
def tasks_have_no_trace(thole, worker, call):
    import dataclasses

    real = worker.read_task
    worker.read_task = lambda message, payload_max: dataclasses.replace(real(message, payload_max), traceparent="")


# ---- renewals, heartbeats, notices ----


@breakage("renew-uncompleted", "resume-completing")
def forgets_what_ended(thole, worker, call):
    real = thole.Worker.handled

    def handled(self, held):
        real(self, held)
        self.forget(held)

    def forget(self, held):
        delivery, held.delivery = held.delivery, None
        really(self, held)
        held.delivery = delivery

    really = thole.Worker.forget
    thole.Worker.handled, thole.Worker.forget = handled, forget


@breakage("renew-idle")
def renews_seldom(thole, worker, call):
    changed(worker.Session, "renew_every", lambda self, value: self.worker.lease - 0.1 if value else value)


@breakage("heartbeat-once")
def repeats_heartbeats(thole, worker, call):
    real = thole.Worker.running
    thole.Worker.running = lambda self: (real(self)[0], [])


@breakage("heartbeat-repeated", "resume-heartbeat")
def forgets_heartbeats(thole, worker, call):
    real = thole.Worker.running

    def running(self):
        listed, beats = real(self)
        for held, beat in beats:
            held.beaten = beat
        return listed, beats

    thole.Worker.running = running


@breakage("notice-inbox", "resume-notice-inbox")
def deaf_inbox(thole, worker, call):
    async def notice_arrived(self, message):
        pass

    worker.Session.notice_arrived = notice_arrived


@breakage("resume-notice-old")
def hears_the_old_gateway(thole, worker, call):
    worker.Session.notify = lambda self, notice: self.worker.notify(notice)
    real = worker.Session.end

    def end(self):
        inbox, self.inbox = self.inbox, None  # stays subscribed
        real(self)

    worker.Session.end = end


@breakage("notice-renew", "resume-notice-renew")
def deaf_renewals(thole, worker, call):
    real = thole.Worker.renewed
    thole.Worker.renewed = lambda self, sent, cancelled, gone: real(self, sent, (), gone)


@breakage("gone")
def ignores_gone(thole, worker, call):
    real = thole.Worker.renewed
    thole.Worker.renewed = lambda self, sent, cancelled, gone: real(self, sent, cancelled, ())


@breakage("notice-first")
def last_notice_counts(thole, worker, call):
    import thole.task as task

    def fire(self, why):
        self.cancel = why
        self._event.set()
        return True

    task.Task._fire = fire


@breakage("notice-inbox", "notice-renew")
def cancelled_is_a_failure(thole, worker, call):
    real = worker.Held.outcome

    def outcome(self, payload_max):
        made = real(self, payload_max)
        return self.failed("cancelled") if made.get("cancelled") else made

    worker.Held.outcome = outcome


# ---- outcomes ----


@breakage("complete-unanswered", "complete-unavailable", "resume-completing")
def completes_once(thole, worker, call):
    async def complete(self, held):
        if not hasattr(held, "once"):
            held.once = True
            await self.call("complete", {"outcomes": [held.outcome(self.worker.payload_max)]}, 10)

    worker.Session.complete = complete


@breakage("complete-fenced")
def repeats_what_is_refused(thole, worker, call):
    async def complete(self, held):
        while True:
            answer = await self.call("complete", {"outcomes": [held.outcome(self.worker.payload_max)]}, 10)
            if answer.results and not answer.results[0].status:
                return self.worker.forget(held)
            await asyncio.sleep(0.2)

    worker.Session.complete = complete


@breakage("throw-text")
def sends_nuls(thole, worker, call):
    worker.Held.failed = lambda self, why, kind="", final=False: {"claim": self.claim, "failure": {"text": why, "type": kind, "final": final}}


@breakage("complete-invalid", "complete-result-invalid")
def ends_when_an_outcome_is_refused(thole, worker, call):
    worker.Held.refused = property(lambda self: True, lambda self, value: None)


@breakage("fail-details")
def forgets_details(thole, worker, call):
    worker.Held.unsent = lambda self: {}


@breakage("details-max-unsaid")
def details_are_payloads(thole, worker, call):
    worker.DETAILS_DEFAULT = 256 * 1024
    changed(thole.Worker, "details_max", lambda self, value: 256 * 1024)


@breakage("gone", "resume-gone")
def completes_what_is_lost(thole, worker, call):
    real = thole.Worker.handled

    def handled(self, held):
        if self.held.get(held.claim) is not held:
            asyncio.ensure_future(call.call(self.nc, self.session.subject + ".complete", {"outcomes": [held.outcome(1 << 20)]}, 10))
        real(self, held)

    thole.Worker.handled = handled


@breakage("payload-too-big")
def sends_what_is_too_big(thole, worker, call):
    real = worker.Held.outcome
    worker.Held.outcome = lambda self, payload_max: real(self, 1 << 30)


@breakage("payload-binary", "client-query")
def base64_of_urls(thole, worker, call):
    import base64

    import thole.client as client
    import thole.task as task

    task.encoded = client.encoded = lambda data: base64.urlsafe_b64encode(data).decode()


# ---- the lease, and sessions that are resumed ----


@breakage("lease-over-silent", "lease-over-killed", "freeze-long")
def no_lease(thole, worker, call):
    thole.Worker.lease_over = lambda self: False


@breakage("lease-over-silent")
def looks_at_the_lease_when_a_request_ends(thole, worker, call):
    real = thole.Worker.renewed
    thole.Worker.patience = lambda self: 10.0

    def renewed(self, sent, cancelled, gone):
        real(self, sent, cancelled, gone)
        self._timer.cancel()

    thole.Worker.renewed = renewed


@breakage("lease-from-open")
def the_lease_begins_with_the_answer(thole, worker, call):
    real = thole.Worker.renewed
    thole.Worker.renewed = lambda self, sent, cancelled, gone: real(self, self.loop.time() + 0.5, cancelled, gone)


@breakage("lease-from-open")
def open_is_no_renewal(thole, worker, call):
    real = worker.Session.open

    async def open(self):
        end = self.worker.lease_end if self.worker.resume else None
        opened = await real(self)
        if opened and end is not None:
            self.worker.renewed(end - self.worker.lease, (), ())
        return opened

    worker.Session.open = open


@breakage("lease-late-answer")
def uses_a_late_answer(thole, worker, call):
    real = thole.Worker.lose
    thole.Worker.patience = lambda self: 10.0

    def lose(self, why):
        session = self.session
        if session is not None and not session.subject:
            self.session = None  # it goes on to be opened
        real(self, why)
        self.session = session

    thole.Worker.lose = lose


@breakage("resume-killed", "resume-stopping")
def opens_a_new_session(thole, worker, call):
    real = call.call

    async def one(nc, subject, request, timeout, sender={}):
        return await real(nc, subject, {**request, "resume": "", "claims": []} if "resume" in request else request, timeout, sender)

    worker.call = one


@breakage("resume-killed", "resume-ends-meanwhile")
def leaves_claims_out(thole, worker, call):
    real = call.call

    async def one(nc, subject, request, timeout, sender={}):
        return await real(nc, subject, {**request, "claims": []} if "claims" in request else request, timeout, sender)

    worker.call = one


@breakage("resume-completing")
def lists_only_what_runs(thole, worker, call):
    real = worker.Session.open

    async def open(self):
        done = {claim: held for claim, held in self.worker.held.items() if held.runner.done()}
        for claim in done:
            del self.worker.held[claim]
        opening = asyncio.ensure_future(real(self))
        await asyncio.sleep(0)
        self.worker.held.update(done)
        return await opening

    worker.Session.open = open


@breakage("resume-gone", "resume-gone-all")
def ignores_gone_of_open(thole, worker, call):
    real = worker.Session.open

    async def open(self):
        renewed = self.worker.renewed
        self.worker.renewed = lambda sent, cancelled, gone: renewed(sent, cancelled, ())
        try:
            return await real(self)
        finally:
            self.worker.renewed = renewed

    worker.Session.open = open


@breakage("resume-gone-completing")
def repeats_what_is_gone(thole, worker, call):
    real = thole.Worker.drop

    def drop(self, held):
        if held.runner.done():
            asyncio.ensure_future(call.call(self.nc, self.session.subject + ".complete", {"outcomes": [held.outcome(1 << 20)]}, 10))
        real(self, held)

    thole.Worker.drop = drop


@breakage("resume-ends-meanwhile", "resume-completing")
def outcomes_wait_for_nothing(thole, worker, call):
    worker.Session.deliver = lambda self, held: self.worker.forget(held) if not self.used else real(self, held)
    real = worker.Session.deliver


@breakage("resume-silent")
def asks_the_old_gateway_for_ever(thole, worker, call):
    thole.Worker.patience = lambda self: self.lease


def kept(worker, keeps):
    """A session that does not end by some answers."""
    real = worker.Session.call

    async def one(self, operation, request, timeout):
        end, self.end = self.end, lambda: None
        try:
            answer = await real(self, operation, request, timeout)
        finally:
            self.end = end
        if answer.status in (-1, 10) or operation == "next" and answer.status == 9:
            if not keeps(operation, answer):
                self.end()
        return answer

    worker.Session.call = one


@breakage("resume-not-found", "resume-idle-not-found")
def not_found_is_any_status(thole, worker, call):
    kept(worker, lambda operation, answer: answer.status == 10)


@breakage("resume-stopping", "resume-idle-stopping")
def stays_at_a_gateway_that_stops(thole, worker, call):
    kept(worker, lambda operation, answer: answer.status == 9)


@breakage("resume-complete-not-found")
def not_found_on_complete_is_final(thole, worker, call):
    async def complete(self, held):
        answer = await call.call(self.worker.nc, self.subject + ".complete", {"outcomes": [held.outcome(1 << 20)]}, 10)
        if answer.status in (0, 10):
            self.worker.forget(held)

    worker.Session.complete = complete


@breakage("resume-open-unanswered", "resume-backoff", "resume-no-gateway")
def resumes_once(thole, worker, call):
    real = worker.Session.open

    async def open(self):
        opened = await real(self)
        if not opened:
            self.worker.lose("impatient")
        return opened

    worker.Session.open = open


@breakage("resume-again-and-again")
def resumes_the_first_session(thole, worker, call):
    changed(thole.Worker, "resume", lambda self, value: getattr(self, "_resume", "") or value)


@breakage("resume-crossing")
def takes_tasks_of_the_old_session(thole, worker, call):
    real = worker.Session.end

    def end(self):
        for job in [job for job in self.jobs if job.get_coro().__name__ == "take_tasks"]:
            self.jobs.discard(job)
        real(self)

    worker.Session.end = end


@breakage("resume-silent")
def works_in_both_sessions(thole, worker, call):
    real = worker.Session.end

    def end(self):
        for job in [job for job in self.jobs if job.get_coro().__name__ == "renewals"]:
            self.jobs.discard(job)
        real(self)

    async def renewals(self):
        while not self.worker.halt.is_set():
            await asyncio.sleep(self.renew_every)
            sent = self.worker.loop.time()
            answer = await call.call(self.worker.nc, self.subject + ".renew", {"running": self.worker.running()[0]}, 1)
            if answer.status == 0:
                self.worker.renewed(sent, answer.cancelled, answer.gone)
            elif not self.ended.is_set():
                self.end()

    worker.Session.end, worker.Session.renewals = end, renewals


@breakage("resume-terms")
def keeps_the_first_terms(thole, worker, call):
    changed(thole.Worker, "payload_max", lambda self, value: 262144)


@breakage("lease-same-claim")
def remembers_claims_of_lost_sessions(thole, worker, call):
    changed(thole.Worker, "ended", lambda self, value: value or getattr(self, "_ended", {}))


@breakage("open-unavailable", "open-no-gateway", "next-error", "resume-busy-loop", "resume-backoff")
def busy_loop(thole, worker, call):
    call.Backoff.next = lambda self: 0.001


@breakage("open-fields")
def host_is_left_out(thole, worker, call):
    worker.socket.gethostname = lambda: ""


@breakage("restart", "cut")
def gives_up_reconnecting(thole, worker, call):
    import nats

    real = nats.connect

    async def connect(url, **options):
        return await real(url, allow_reconnect=False)

    nats.connect = connect


# ---- the end ----


@breakage("close-idle", "close-waits")
def ends_without_close(thole, worker, call):
    async def close(self):
        self.closed = True
        self.end()

    worker.Session.close = close


@breakage("close-crossing")
def drops_the_last_answer(thole, worker, call):
    real = worker.Session.close

    async def close(self):
        for job in [job for job in self.jobs if job.get_coro().__name__ == "take_tasks"]:
            job.cancel()
        await real(self)

    worker.Session.close = close


@breakage("close-killed", "close-completing", "close-not-found-held")
def ends_when_its_gateway_dies(thole, worker, call):
    real = worker.Session.end

    def end(self):
        self.closed = self.closed or self.worker.halt.is_set()
        real(self)

    worker.Session.end = end


@breakage("close-limit-moved", "close-killed")
def the_limit_begins_anew(thole, worker, call):
    real = worker.Session.close

    async def close(self):
        self.worker.stop_by = self.worker.loop.time() + self.worker.close_limit
        await real(self)

    worker.Session.close = close


# ---- clients ----


@breakage("client-start-repeated", "client-signal-repeated")
def new_request_id(thole, worker, call):
    import secrets

    real = thole.Client._call

    async def one(self, operation, request, timeout, sender):
        if "requestId" in request:
            request["requestId"] = secrets.token_hex(16)
        return await real(self, operation, request, timeout, sender)

    thole.Client._call = one


@breakage("client-wait-again")
def wait_gives_up(thole, worker, call):
    async def wait(self, instance, *, timeout=None):
        answer = await self._call("wait", {"instance": instance, "waitMs": 1000}, 5, self._sender())
        return thole.Outcome(answer.status, answer.state)

    thole.Client.wait = wait


@breakage("client-start-conflict", "client-denied")
def repeats_errors(thole, worker, call):
    async def request(self, operation, message, timeout):
        for _ in range(3):
            answer = await self._call(operation, message, 5, self._sender())
        raise thole.Error(answer.status, answer.text)

    thole.Client._request = request


@breakage("client-actor", "client-actor-default")
def actor_is_fixed(thole, worker, call):
    real = thole.Client._sender
    thole.Client._sender = lambda self: {**real(self), "Thole-Actor": "somebody"}


@breakage("client-actor-refused")
def actor_is_not_checked(thole, worker, call):
    thole.Client._sender = lambda self: {"Thole-Actor": self.actor, "Thole-Client": "thole"}


@breakage("client-vouched")
def vouched_actor_as_in_urls(thole, worker, call):
    from urllib.parse import quote

    thole.Client._by = lambda self: self.vouched_actor and ".by." + quote(self.vouched_actor)


@breakage("client-vouched")
def vouched_actor_is_forgotten_by_queries(thole, worker, call):
    real = thole.Client._by
    query = thole.Client.query

    async def without(self, *args, **more):
        thole.Client._by = lambda self: ""
        try:
            return await query(self, *args, **more)
        finally:
            thole.Client._by = real

    thole.Client.query = without


@breakage("client-vouched-refused")
def vouched_actor_is_not_checked(thole, worker, call):
    thole.Client._by = lambda self: self.vouched_actor and ".by." + self.vouched_actor


@breakage("client-trace")
def repetitions_have_no_trace(thole, worker, call):
    real, seen = thole.Client._call, set()

    async def once(self, operation, request, timeout, sender):
        kept = {name: value for name, value in sender.items() if operation not in seen or name.startswith("Thole-")}
        seen.add(operation)
        return await real(self, operation, request, timeout, kept)

    thole.Client._call = once


# ---- what a client sees ----


@breakage("client-wait-explained")
def wait_says_nothing(thole, worker, call):
    real = thole.Error.__init__
    thole.Error.__init__ = lambda self, status, text, *more: real(self, status, text)


@breakage("client-wait-explained")
def each_wait_is_explained(thole, worker, call):
    real = thole.Client._call

    async def one(self, operation, request, timeout, sender):
        return await real(self, operation, {**request, "explain": True} if operation == "wait" else request, timeout, sender)

    thole.Client._call = one


@breakage("client-wait-default")
def waits_for_ever(thole, worker, call):
    changed(thole.Client, "wait_limit", lambda self, value: 1e6)


@breakage("client-start-known")
def starts_what_nobody_knows(thole, worker, call):
    real = thole.Client._request

    async def request(self, operation, message, timeout):
        message.pop("requireKnown", None)
        return await real(self, operation, message, timeout)

    thole.Client._request = request


@breakage("client-start-event", "client-start-event-vouched")
def event_is_signalled_behind_the_start(thole, worker, call):
    real = thole.Client.start

    async def start(self, orchestration, input=b"", *, instance=None, event=None, event_data=b"", **more):
        started = await real(self, orchestration, input, instance=instance, **more)
        if event:
            await self.signal(started, event, event_data)
        return started

    thole.Client.start = start


@breakage("client-describe")
def hindrances_are_left_out(thole, worker, call):
    from thole import client

    real = client._instance
    client._instance = lambda info, hindrances=(): real(info)


@breakage("client-list")
def pages_begin_anew(thole, worker, call):
    real = thole.Client.list

    async def page(self, *, behind=None, **more):
        return await real(self, **more)

    thole.Client.list = page


@breakage("client-complete")
def failures_are_outputs(thole, worker, call):
    async def fail_activity(self, token, text, type="", **more):
        await self.complete_activity(token, text.encode(), **more)

    thole.Client.fail_activity = fail_activity


@breakage("later")
def later_is_an_output(thole, worker, call):
    from thole import task

    real = task.Held.outcome

    def outcome(self, payload_max):
        told = real(self, payload_max)
        return {"claim": self.claim, "output": ""} if told.pop("later", False) else told

    task.Held.outcome = outcome


@breakage("later-without-token")
def later_needs_no_token(thole, worker, call):
    import dataclasses

    real = worker.read_task
    worker.read_task = lambda message, details_max: dataclasses.replace(real(message, details_max), token="x")


@breakage("json-bad")
def bad_inputs_are_tried_again(thole, worker, call):
    changed(thole.Failure, "final", lambda self, value: False)


@breakage("json")
def values_are_texts(thole, worker, call):
    os.environ["CONF_HANDLERS"] = "threads"
    thole.json_handler = lambda function: lambda task: str(function(task, json.loads(task.input))).encode()


@breakage("deadline")
def deadlines_are_not_told(thole, worker, call):
    import dataclasses

    real = worker.read_task
    worker.read_task = lambda message, details_max: dataclasses.replace(real(message, details_max), timeout=None)


def drive(name):
    import thole
    import thole._call
    import thole.worker

    import conformance_driver

    BREAKAGES[name][0](thole, thole.worker, thole._call)
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
