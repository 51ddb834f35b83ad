#!/usr/bin/env python3
"""The hash of a record, and with it the links between the records of histories: written from docs/audit.md alone. Of a
file of vectors it prints what differs; of histories in JSON lines (thole export) each link that is wrong; exit code 1 if
anything is. record_hash.py FILE..."""
import base64, hashlib, json, sys
def number(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
def short(value):  # a number in as few bytes as it can have
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + short(value >> 7)
def fields(data):  # number, wire type, value, tag as stored, all as stored
    at = 0
    while at < len(data):
        begin = at
        tag, at = number(data, at)
        behind, kind, value = at, tag & 7, None
        if kind == 0:
            value, at = number(data, at)
        else:
            length, at = number(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at:at + length], at + length
        if at > len(data) or tag < 8 or tag >> 32:
            raise ValueError("cut off, or no field")
        yield tag >> 3, kind, value, data[begin:behind], data[begin:at]
def need(truth, why):
    if not truth:
        raise ValueError(why)
def notes(event):  # of each payload: the field of the body, and its hash or its salt; and the body without payloads
    found, bodies = [], [f for f in fields(event) if f[1] == 2 and 3 <= f[0] <= 999]
    for _, _, note, tag, whole in (f for f in fields(event) if f[0] == 1002):
        said = {k: v for k, _, v, _, _ in fields(note)}
        field, salt, erased = said.get(1, 0), said.get(2, b""), said.get(3, b"")
        need(field and (len(salt), len(erased)) in ((16, 0), (0, 32)) and field not in [f for f, _, _ in found], "bad note")
        need(len(note) == 3 + len(short(field)) + len(salt + erased) and whole == tag + short(len(note)) + note, "bad note")
        found.append((field, salt, erased))
    need(len(bodies) <= 1 and all(w == t + short(len(v)) + v for _, _, v, t, w in bodies) and (bodies or not found), "bad body")
    payloads = {}
    for n, kind, value, _, whole in fields(bodies[0][2] if bodies else b""):
        if n in [f for f, _, _ in found]:
            need(kind == 2 and n not in payloads and whole == short(n << 3 | 2) + short(len(value)) + value, "bad payload")
            payloads[n] = value
    need(not any(e and f in payloads for f, _, e in found), "a payload where one was erased")
    return [(f, e or hashlib.sha256(b"thole.payload.v1\0" + s + payloads.get(f, b"")).digest()) for f, s, e in found]
def outline(data, level, cut=()):
    out, said = b"", iter(notes(data)) if level == 2 else None
    cut = [f for f, _ in notes(data)] if level == 2 else cut
    for n, kind, value, tag, whole in fields(data):
        if level < 3 and kind == 2 and (n == (7, 8, 0)[level] or level == 2 and 3 <= n <= 999):
            need(whole == tag + short(len(value)) + value, "a length that is too long")
            out += tag + outline(value, level + 1, cut) + b"\0"
        elif level == 2 and n == 1002:
            field, digest = next(said)
            out += tag + field.to_bytes(4, "big") + digest
        elif level < 3 or n not in cut:
            out += whole
    return out
def record_hash(namespace, partition, record):
    place = namespace.encode() + b"\0" + partition.to_bytes(4, "big")
    try:
        if [f[2] for f in fields(record) if f[0] == 18][-1:] == [2]:
            return hashlib.sha256(b"thole.record.v2\0" + place + outline(record, 0)).digest()
    except (ValueError, IndexError, TypeError):
        pass  # not as form 2 must be: form 1
    return hashlib.sha256(b"thole.record.v1\0" + place + record).digest()
wrong = 0
def say(text):
    global wrong
    wrong += 1
    print(text)
def check_line(line, here):
    if line["schema"] == "thole.export.history.v1":
        here.update(line, before=None)
    if line["schema"] == "thole.export.record.v1":
        record = base64.b64decode(line["record"])
        named = dict((f[0], f[2]) for f in fields(record)).get(17)
        if here["before"] and named != here["before"]:
            say(f"{here['instance']} #{line['sequence']}: names another record than the one before it")
        here["before"] = record_hash(here["namespace"], int(here["partition"]), record)
if __name__ == "__main__":
    for path in sys.argv[1:]:
        text, here = open(path).read(), {}
        if text.startswith("["):
            for v in json.loads(text):
                got = record_hash(v["namespace"], v["partition"], bytes.fromhex(v["record"])).hex()
                got == v["hash"] or say(f"{v['name']}: {got}, not {v['hash']}")
        else:
            [check_line(json.loads(line), here) for line in text.splitlines()]
    sys.exit(1 if wrong else 0)
