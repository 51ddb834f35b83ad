#!/usr/bin/env python3
"""
A client of thole that was written from docs/wire.md alone: standard library, a plain socket, protobuf by hand.
It starts, signals, queries, pauses, cancels, awaits and deletes instances whose ids are hostile to subjects,
and publishes what cannot be taken.

    wire_client.py HOST:PORT NAMESPACE TOKENS_FILE     (engine and worker of program_verbs must run)
"""
import base64
import json
import os
import re
import socket
import sys
import time
import zlib

WAIT_S = 20.0


# ---- NATS: https://docs.nats.io/reference/reference-protocols/nats-protocol ----

class Message:
    def __init__(self, subject, reply, headers, status, body):
        self.subject, self.reply, self.headers, self.status, self.body = subject, reply, headers, status, body


class Nats:
    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=WAIT_S)
        self.buffer = b""
        self.sids = 0
        self.inbox = "_INBOX." + os.urandom(8).hex()
        self.kept = []
        self.line()  # INFO
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "py"}
        self.socket.sendall(b"CONNECT " + json.dumps(options).encode() + b"\r\nPING\r\n")
        while self.line() != b"PONG":
            pass
        self.subscribe(self.inbox + ".*")

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise SystemExit("the server closed the connection")
        self.buffer += data

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def take(self, count):
        while len(self.buffer) < count + 2:
            self.more()
        data, self.buffer = self.buffer[:count], self.buffer[count + 2:]
        return data

    def subscribe(self, subject):
        self.sids += 1
        self.socket.sendall(f"SUB {subject} {self.sids}\r\nPING\r\n".encode())
        while True:  # until the server has it
            line = self.line()
            if line == b"PONG":
                return
            self.keep(line)

    def publish(self, subject, body, reply="", headers=None):
        if headers:
            head = b"NATS/1.0\r\n" + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items()) + b"\r\n"
            line = f"HPUB {subject} {reply} {len(head)} {len(head) + len(body)}\r\n".encode()
            self.socket.sendall(line + head + body + b"\r\n")
        else:
            self.socket.sendall(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")

    def keep(self, line):
        words = line.split(b" ")
        if words[0] == b"PING":
            self.socket.sendall(b"PONG\r\n")
        elif words[0] == b"MSG":
            body = self.take(int(words[-1]))
            self.kept.append(Message(words[1].decode(), "", {}, "", body))
        elif words[0] == b"HMSG":
            head_bytes, all_bytes = int(words[-2]), int(words[-1])
            data = self.take(all_bytes)
            head = data[:head_bytes].decode().split("\r\n")
            headers = dict(h.split(": ", 1) for h in head[1:] if ": " in h)
            self.kept.append(Message(words[1].decode(), "", headers, head[0][8:].strip(), data[head_bytes:]))
        elif words[0] == b"-ERR":
            raise SystemExit("the server says " + line.decode())

    def wait(self, wanted, seconds=WAIT_S):
        """The first message for which wanted(message) is true; None after so long."""
        end = time.monotonic() + seconds
        while True:
            for i, message in enumerate(self.kept):
                if wanted(message):
                    return self.kept.pop(i)
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                self.keep(self.line())
            except socket.timeout:
                return None
            finally:
                self.socket.settimeout(WAIT_S)

    def request(self, subject, body, seconds=WAIT_S):
        reply = self.inbox + "." + os.urandom(6).hex()
        self.publish(subject, body, reply)
        return self.wait(lambda m: m.subject == reply, seconds)


# ---- protobuf ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data):
    """(number, value) of each field; a number or bytes."""
    at, out = 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            out.append((key >> 3, number()))
        elif key & 7 == 2:
            length = number()
            out.append((key >> 3, data[at:at + length]))
            at += length
        else:
            raise SystemExit(f"wire type {key & 7} is used nowhere")
    return out


def get(data, number, default):
    found = [value for key, value in fields(data) if key == number]
    return found[-1] if found else default


# ---- what the page says ----

PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~"
START, RESULT, CANCEL, EVENT, TERMINATE, PAUSE, RESUME, DELETE = 3, 4, 5, 6, 8, 9, 10, 11
CONTROL = {CANCEL: "cancel", TERMINATE: "terminate", PAUSE: "pause", RESUME: "resume"}
ENDS = {12: "completed", 13: "failed", 14: "cancelled", 32: "terminated"}


def token(instance):
    return "".join(chr(c) if c in PLAIN else f"%{c:02X}" for c in instance)


def route(kind, body):
    """The two tokens of the subject that say what the message does."""
    if kind == START:
        name, event = get(body, 1, b"").decode(), get(body, 6, None)
        return f"start.{name}" if event is None else f"start_event.{name}~{get(event, 1, b'').decode()}"
    if kind == EVENT:
        return "event." + get(body, 1, b"").decode()
    if kind == DELETE:
        return "control.force_delete" if get(body, 4, 0) else "control.delete"
    return "result.outside" if kind == RESULT else "control." + CONTROL[kind]


class Thole:
    def __init__(self, nats, ns):
        self.nats, self.ns = nats, ns
        if self.config("format") != 2:
            raise SystemExit("another format")
        self.partitions = self.config("partitions")
        self.payload_max = self.config("payload_max")

    def get(self, stream, subject):
        """(subject, body, sequence) of the last message; None: there is none."""
        answer = json.loads(self.nats.request("$JS.API.STREAM.MSG.GET." + stream,
                                              json.dumps({"last_by_subj": subject}).encode()).body)
        if answer.get("error", {}).get("code") == 404:
            return None
        message = answer["message"]
        return message["subject"], base64.b64decode(message.get("data", "")), message["seq"]

    def config(self, key):
        return int(self.get(f"KV_THOLE_{self.ns}_CONFIG", f"$KV.THOLE_{self.ns}_CONFIG.{key}")[1])

    def partition(self, instance):
        return zlib.crc32(instance) % self.partitions

    def subscribe(self, instance):
        self.nats.subscribe(f"thole.{self.ns}.event.*.{token(instance)}.*")

    def send_raw(self, subject, body):
        ack = self.nats.request(subject, body)
        if ack is None or ack.status == "503":
            return None
        return json.loads(ack.body)

    def send(self, instance, kind, body):
        message = field(1, 1) + field(2, instance) + field(kind, body)
        ack = self.send_raw(f"thole.{self.ns}.in.{self.partition(instance)}.{route(kind, body)}.{token(instance)}", message)
        check("stored", ack is not None and ack.get("seq", 0) > 0)

    def event(self, instance, kind, request=None):
        """The live event of that kind, caused by that request."""
        end = f".{token(instance)}.{kind}"
        return self.nats.wait(lambda m: m.subject.startswith(f"thole.{self.ns}.event.") and
                              m.subject.endswith(end) and
                              (request is None or m.headers.get("Thole-Request") == token(request)))

    def look(self, instance):
        """("completed", output), …; None: it has not ended, or is not there."""
        p = self.partition(instance)
        stream = f"THOLE_{self.ns}_HIST_{p}"
        found = self.get(stream, f"thole.*.hist.{p}.{token(instance)}.*")
        if found is None or found[0].endswith((".deleted", ".0")):
            return None
        subject, record, sequence = found
        _, epoch, opened = self.get(stream, f"thole.*.ctl.{p}.epoch")
        if get(epoch, 2, 0) > get(record, 2, 0) and opened < sequence:
            return None  # it does not count
        events = [value for key, value in fields(get(record, 7, b"")) if key == 8]
        for number, kind in ENDS.items():
            body = get(events[-1], number, None) if events else None
            if body is not None:
                return kind, get(body, 2 if kind == "failed" else 1, b"")
        return None

    def query(self, instance, name, text=b""):
        body = field(1, 1) + field(2, instance) + field(3, name) + field(4, text)
        for _ in range(10):  # at a handover nobody answers for a moment
            answer = self.nats.request(f"thole.{self.ns}.query.{self.partition(instance)}.{name.decode()}.{token(instance)}", body)
            if answer is not None and answer.status != "503" and get(answer.body, 2, 0) != 9:
                return get(answer.body, 2, 0), get(answer.body, 3, b"")
            time.sleep(0.05)
        raise SystemExit("nobody answers a query")


# ---- checks ----

failures = 0


def check(what, good, *why):
    global failures
    if not good:
        failures += 1
        print("FAILED:", what, *why)


HOSTILE = [b"order-17", b"order:17", b"a/b", b"a.b.c", b"100%", b"%2E", b"two words", b"*", b">", b"a*b>c", b"$JS.API.INFO",
           b"\r\nPUB x 0\r\n", b"\x01\x7f", "ä€😀".encode(), "日本/注文:1".encode(), b"-", b"~", b"x" * 200,
           "é".encode() * 100]


def check_page():
    """The encoder above against the page's own examples."""
    page = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/wire.md"), encoding="utf-8").read()
    rows = re.findall(r"^\| [^|]+ \| `([0-9a-f*]+)` \| (.+?) \| `([0-9a-f]{8})` \| (\d+) \| (\d+) \|$", page, re.M)
    check("the page has examples", len(rows) >= 20)
    for text, encoded, crc, of8, of64 in rows:
        digits, _, times = text.partition("*")
        instance = bytes.fromhex(digits) * int(times or 1)
        many = re.fullmatch(r"`(.+)` (\d+) times", encoded)
        encoded = many.group(1) * int(many.group(2)) if many else encoded.strip("`")
        check("token", token(instance) == encoded, token(instance), encoded)
        check("crc", zlib.crc32(instance) == int(crc, 16) and zlib.crc32(instance) % 8 == int(of8) and
              zlib.crc32(instance) % 64 == int(of64), text)


def one_life(thole, instance, number):
    start, go = b"start-%d" % number, b"go-%d \xc3\xa4" % number
    thole.subscribe(instance)
    body = field(1, b"gate") + field(2, b"2") + field(3, start)
    thole.send(instance, START, body)
    check("started", thole.event(instance, "started", start) is not None, instance)
    thole.send(instance, START, body)  # again: the same answer, and no second instance
    check("started again", thole.event(instance, "started", start) is not None, instance)
    other = b"other-%d" % number
    thole.send(instance, START, field(1, b"gate") + field(3, other))
    check("in use", thole.event(instance, "rejected", other) is not None, instance)
    check("query", thole.query(instance, b"passed", b"x") == (0, b"passed 0 x"), instance)
    for _ in range(2):  # one event, said twice
        thole.send(instance, EVENT, field(1, b"go") + field(2, b"first") + field(3, go))
    check("has not ended", thole.look(instance) is None, instance)
    thole.send(instance, EVENT, field(1, b"go") + field(2, b"\x00last\xff") + field(3, go + b"2"))
    ended = thole.event(instance, "completed")
    check("completed", ended is not None and ended.body == b"\x00last\xff", instance)
    check("looked up", thole.look(instance) == ("completed", b"\x00last\xff"), instance, thole.look(instance))
    check("query of the ended", thole.query(instance, b"passed") == (0, b"passed 2"), instance)
    thole.send(instance, DELETE, field(2, b"delete-%d" % number))
    check("deleted", thole.event(instance, "deleted") is not None, instance)
    check("gone", thole.look(instance) is None and thole.query(instance, b"passed")[0] == 10, instance)


def other_ends(thole):
    instance = "cancel/me: ä.*".encode()
    thole.subscribe(instance)
    thole.send(instance, START, field(1, b"gate") + field(3, b"c-1"))
    check("started", thole.event(instance, "started", b"c-1") is not None)
    check("no such query", thole.query(instance, b"nothing")[0] == 10)
    thole.send(instance, PAUSE, field(1, b"a while") + field(2, b"c-2"))
    check("paused", thole.event(instance, "paused") is not None)
    thole.send(instance, RESUME, field(2, b"c-3"))
    check("resumed", thole.event(instance, "resumed") is not None)
    thole.send(instance, CANCEL, field(1, "geändert".encode()) + field(2, b"c-4"))
    ended = thole.event(instance, "cancelled")
    check("cancelled", ended is not None and ended.body == "geändert".encode())
    check("looked up", thole.look(instance) == ("cancelled", "geändert".encode()), thole.look(instance))
    instance = b"terminate me"
    thole.subscribe(instance)
    thole.send(instance, START, field(1, b"gate") + field(3, b"t-1"))
    thole.send(instance, TERMINATE, field(1, b"enough") + field(2, b"t-2"))
    check("terminated", thole.event(instance, "terminated") is not None)
    check("looked up", thole.look(instance) == ("terminated", b"enough"))
    instance = b"fails."
    thole.subscribe(instance)
    thole.send(instance, START, field(1, b"failing") + field(2, b"you") + field(3, b"f-1"))
    check("failed", thole.event(instance, "failed") is not None)
    check("looked up", thole.look(instance) == ("failed", b"no card for you"), thole.look(instance))


def events_that_start(thole):
    early, both = b"early.bird", b"signal with start"
    thole.subscribe(early)
    thole.subscribe(both)
    thole.send(early, EVENT, field(1, b"go") + field(2, b"before") + field(3, b"e-1"))
    thole.send(early, START, field(1, b"gate") + field(3, b"e-2"))
    ended = thole.event(early, "completed")
    check("an event before its instance", ended is not None and ended.body == b"before")
    for request in (b"s-1", b"s-2"):  # starts it; is taken by what runs
        event = field(1, b"go") + field(2, b"with " + request)
        thole.send(both, START, field(1, b"gate") + field(2, b"2") + field(3, request) + field(6, event))
        check("signal with start", thole.event(both, "started", request) is not None)
    ended = thole.event(both, "completed")
    check("both events", ended is not None and ended.body == b"with s-2")
    versioned = b"version/1"
    thole.subscribe(versioned)
    thole.send(versioned, START, field(1, b"versioned") + field(3, b"v-1") + field(4, 2))
    ended = thole.event(versioned, "completed")
    check("a version", ended is not None and ended.body == b"two")


def who_asks(thole):
    """What the first event of an instance says of its actor: the name, and whether NATS vouches for it."""
    stated = field(100, field(1, b"bob"))
    for number, (end, sender, name, vouched) in enumerate((("", b"", b"", 0), ("", stated, b"bob", 0), (".by.a%2Eb%40c", stated, b"a.b@c", 1),
                                                           (".by.by", b"", b"by", 1))):
        instance = b"who.asks/%d" % number
        p, request = thole.partition(instance), b"who-%d" % number
        thole.subscribe(instance)
        body = field(1, 1) + field(2, instance) + field(START, field(1, b"gate") + field(2, b"1") + field(3, request)) + sender
        ack = thole.send_raw(f"thole.{thole.ns}.in.{p}.start.gate.{token(instance)}{end}", body)
        check("stored", ack is not None and ack.get("seq", 0) > 0, end)
        check("started", thole.event(instance, "started", request) is not None, end)
        _, record, _ = thole.get(f"THOLE_{thole.ns}_HIST_{p}", f"thole.*.hist.{p}.{token(instance)}.*")
        started = next(value for key, value in fields(get(record, 7, b"")) if key == 8)
        actor = get(started, 1000, b"")
        check("who asks", (get(actor, 1, b""), get(actor, 2, 0)) == (name, vouched), end, actor)


def completed_outside(thole, path):
    instance = b"out:side"
    thole.subscribe(instance)
    thole.send(instance, START, field(1, b"outside") + field(3, b"o-1"))
    end, line = time.monotonic() + WAIT_S, ""
    while not line.endswith("\n") and time.monotonic() < end:
        time.sleep(0.02)
        line = open(path, encoding="ascii").read() if os.path.exists(path) else ""
    p, execution, activity, tried, nonce, encoded = line.strip().split(".")
    check("the token names it", encoded == token(instance) and int(p) == thole.partition(instance))
    result = field(1, int(execution)) + field(2, int(activity)) + field(4, b"by hand") + field(7, int(tried))
    thole.nats.subscribe(f"thole.{thole.ns}.rejected.*")
    for forged in (b"", b"0" * 32, nonce.encode()[:-1], nonce.encode() + b"0"):
        thole.send(instance, RESULT, result + field(15, forged))
        kept = thole.nats.wait(lambda m: m.subject.startswith(f"thole.{thole.ns}.rejected."))
        check("a forged result", kept is not None and kept.headers["Thole-Code"] == "nonce", forged)
    check("still runs", thole.look(instance) is None)
    thole.send(instance, RESULT, result + field(15, nonce.encode()))
    ended = thole.event(instance, "completed")
    check("completed from outside", ended is not None and ended.body == b"by hand")


def text64(data):
    return base64.b64encode(data).decode()


def in_json(thole, path):
    """One life in JSON, from the table of messages: the same subjects, the body and a query in the canonical mapping."""
    instance = "in json: ä".encode()

    def place(what, name):
        return f"thole.{thole.ns}.{what}.{thole.partition(instance)}.{name}.{token(instance)}"
    header = {"Content-Type": "application/json"}

    def request(subject, body):
        reply = thole.nats.inbox + "." + os.urandom(6).hex()
        thole.nats.publish(subject, body if isinstance(body, bytes) else json.dumps(body).encode(), reply, header)
        return thole.nats.wait(lambda m: m.subject == reply)

    def send(name, **body):
        ack = json.loads(request(place("in", name), {"format": 1, "instance": text64(instance), **body}).body)
        check("stored", ack.get("seq", 0) > 0, name, ack)

    def query(body):
        answer = request(place("query", "passed"), body)
        check("an answer in JSON", answer.headers.get("Content-Type") == "application/json")
        return json.loads(answer.body)

    thole.subscribe(instance)
    send("start.gate", start={"orchestration": text64(b"gate"), "input": text64(b"2"), "requestId": text64(b"j-1")})
    check("started", thole.event(instance, "started", b"j-1") is not None)
    asked = {"format": 1, "instance": text64(instance), "name": text64(b"passed"), "input": text64(b"x")}
    check("query", query(asked) == {"format": 1, "data": text64(b"passed 0 x")})
    check("another query", query({**asked, "name": text64(b"other")})["status"] == 4)
    check("no query", query(b"{no")["status"] == 4)
    send("event.go", event={"name": text64(b"go"), "data": text64(b"first")})
    send("event.go", event={"name": text64(b"go"), "data": text64(b"\x00last\xff"), "request_id": text64(b"j-2")})
    ended = thole.event(instance, "completed")
    check("completed", ended is not None and ended.body == b"\x00last\xff")
    for code, body in (("malformed", b'{"format":1'), ("malformed", b'{"format":"one"}'),
                       ("malformed", b'{"cancel":{},"pause":{}}'), ("unsupported", {"format": 2, "cancel": {}}),
                       ("route", {"format": 1, "instance": text64(instance), "pause": {}})):
        request(place("in", "control.cancel"), body)
        kept = thole.nats.wait(lambda m: m.subject.startswith(f"thole.{thole.ns}.rejected."))
        check("rejected", kept is not None and kept.headers["Thole-Code"] == code, body, kept and kept.headers)
        check("as it was sent", not isinstance(body, bytes) or kept.body == body, body)
    outside = "out in json".encode()
    thole.subscribe(outside)
    thole.send(outside, START, field(1, b"outside") + field(3, b"j-3"))
    end, parts = time.monotonic() + WAIT_S, []
    while (len(parts) != 6 or parts[5] != token(outside)) and time.monotonic() < end:
        time.sleep(0.02)
        parts = open(path, encoding="ascii").read().strip().split("\n")[-1].split(".")
    result = {"execution": parts[1], "activityId": parts[2], "tryNumber": int(parts[3]), "nonce": text64(parts[4].encode()),
              "data": text64(b"by JSON")}
    request(f"thole.{thole.ns}.in.{thole.partition(outside)}.result.outside.{token(outside)}",
            {"format": 1, "instance": text64(outside), "activityResult": result})
    ended = thole.event(outside, "completed")
    check("completed in JSON", ended is not None and ended.body == b"by JSON")


def cannot_be_taken(thole):
    good = b"good.id"
    right = thole.partition(good)
    event = field(1, b"go")
    body = field(1, 1) + field(2, good) + field(EVENT, event)
    large = field(1, 1) + field(2, good) + field(EVENT, event + field(2, b"x" * (thole.payload_max + 1)))
    inbox = f"thole.{thole.ns}.in."
    for code, subject, data in (("subject", f"{inbox}{right}.event.go.good%2eid", body),
                                ("subject", f"{inbox}{right}.event.go.g%6Fod%2Eid", body),
                                ("subject", f"{inbox}{right}.event.go.%C3", body),
                                ("subject", f"{inbox}{right}.event.go.good%2Eid.by.%61", body),
                                ("route", f"{inbox}{right}.event.stop.good%2Eid.by.a%2Eb", body),
                                ("partition", f"{inbox}{(right + 1) % thole.partitions}.event.go.good%2Eid", body),
                                ("malformed", f"{inbox}{right}.event.go.good%2Eid", b"{}"),
                                ("unsupported", f"{inbox}{right}.event.go.good%2Eid", field(1, 2) + field(2, good)),
                                ("instance", f"{inbox}{right}.event.go.good%2Eid", field(1, 1) + field(2, b"bad") + field(EVENT, event)),
                                ("request_id", f"{inbox}{right}.event.go.good%2Eid",
                                 field(1, 1) + field(2, good) + field(EVENT, event + field(3, b"\xff"))),
                                ("route", f"{inbox}{right}.event.stop.good%2Eid", body),
                                ("route", f"{inbox}{right}.start.go.good%2Eid", body),
                                ("route", f"{inbox}{right}.event.go.good%2Eid",
                                 field(1, 1) + field(2, good) + field(EVENT, event + field(3, b"<1.2.x"))),
                                ("too_large", f"{inbox}{right}.event.go.good%2Eid", large)):
        ack = thole.send_raw(subject, data)
        check("acknowledged all the same", ack is not None and "seq" in ack, code)
        kept = thole.nats.wait(lambda m: m.subject.startswith(f"thole.{thole.ns}.rejected."))
        check("rejected", kept is not None and kept.headers["Thole-Code"] == code and
              kept.headers["Thole-Subject"] == subject and kept.headers["Thole-Sequence"] == str(ack["seq"]) and
              kept.headers["Thole-Bytes"] == str(len(data)) and kept.body == data[:1024] and
              len(kept.headers["Thole-Reason"]) > 10 and kept.headers["Thole-Time"].endswith("Z"),
              code, kept and kept.headers)
    for subject in ("event.go.good.id", "good%2Eid", "event.good%2Eid", "event.go.good%2Eid.by", "event.go.good%2Eid.by.a.b"):
        check("of no stream", thole.send_raw(f"{inbox}{right}.{subject}", body) is None, subject)


def main():
    host, port = sys.argv[1].split(":")
    check_page()
    thole = Thole(Nats(host, int(port)), sys.argv[2])
    for number, instance in enumerate(HOSTILE):
        one_life(thole, instance, number)
    other_ends(thole)
    events_that_start(thole)
    who_asks(thole)
    completed_outside(thole, sys.argv[3])  # subscribes to what is rejected
    cannot_be_taken(thole)
    in_json(thole, sys.argv[3])
    print(f"{len(HOSTILE)} lives, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
