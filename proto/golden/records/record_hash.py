#!/usr/bin/env python3
"""The hash of a record, and with it the links between the records of histories: written from docs/audit.md alone. Of a
file of vectors it prints what differs; of histories in JSON lines (thole export) each link that is wrong; exit code 1 if
anything is. record_hash.py FILE..."""
import base64, hashlib, json, sys
def need(truth):
    if not truth:
        raise ValueError("not of form 2")
def number(data, at):
    size = next((i for i in range(1, 11) if data[at + i - 1] < 128), 0)
    need(size)
    return sum((data[at + i] & 127) << 7 * i for i in range(size)) % 2**64, at + size
def short(value):  # a number in as few bytes as it can have
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + short(value >> 7)
def tag(n):
    return short(n << 3 | 2)
def fields(data, at=0):  # number, value, as stored, and whether it is of bytes that are stored as briefly as can be
    while at < len(data):
        begin, (key, at) = at, number(data, at)
        length, at = number(data, at) if key & 7 in (0, 2) else ({1: 8, 5: 4}[key & 7], at)
        value, at = (length, at) if key & 7 == 0 else (data[at:at + length], at + length)
        need(at <= len(data) and key >= 8 and key < 2**32)
        brief = key & 7 == 2 and data[begin:at] == tag(key >> 3) + short(length) + value
        yield key >> 3, value if key & 7 in (0, 2) else None, data[begin:at], brief
def is_body(n, value):
    return 3 <= n <= 999 and isinstance(value, bytes)
def note(message):  # the payload's field, and its salt or the hash that is left
    said = {n: value for n, value, _, _ in fields(message)}
    field, salt, erased = said.get(1, 0), said.get(2, b""), said.get(3, b"")
    need(0 < field < 2**32 and (len(salt), len(erased)) in ((16, 0), (0, 32)))
    need(len(message) == 3 + len(short(field)) + len(salt + erased))
    return field, salt, erased
def outline_of_event(event):
    out, parts = b"", list(fields(event))
    bodies = [part for part in parts if is_body(*part[:2])]
    notes = [note(value) for n, value, _, _ in parts if n == 1002]
    erased = {field: left for field, _, left in notes}
    inner = [field for _, value, _, _ in bodies for field in fields(value)]
    there = [field for field in inner if field[0] in erased]
    payloads = {n: value for n, value, _, _ in there}
    need(all(brief for n, value, _, brief in parts if n == 1002 or is_body(n, value)))
    need(len(bodies) == 1 or not bodies + notes)
    need(len(erased) == len(notes) <= 8 and len(payloads) == len(there))
    need(all(brief and not erased[n] for n, _, _, brief in there))
    for n, value, whole, _ in parts:
        if n == 1002:
            field, salt, left = note(value)
            digest = left or hashlib.sha256(b"thole.payload.v1\0" + salt + payloads.get(field, b"")).digest()
            whole = tag(n) + field.to_bytes(4, "big") + digest
        elif is_body(n, value):
            whole = tag(n) + b"".join(stored for field, _, stored, _ in inner if field not in erased) + b"\0"
        out += whole
    return out + b"\0"
def outline(data, inner, then):  # as stored, but for the fields of that number
    need(all(brief for n, value, _, brief in fields(data) if n == inner and isinstance(value, bytes)))
    return b"".join(tag(n) + then(value) if n == inner and brief else whole for n, value, whole, brief in fields(data))
def record_hash(namespace, partition, record):
    place = namespace.encode() + b"\0" + partition.to_bytes(4, "big")
    try:
        if [value for n, value, _, _ in fields(record) if n == 18][-1:] == [2]:
            whole = outline(record, 7, lambda turn: outline(turn, 8, outline_of_event) + b"\0")
            return hashlib.sha256(b"thole.record.v2\0" + place + whole).digest()
    except (ValueError, LookupError, TypeError):
        pass  # not as form 2 must be: form 1
    return hashlib.sha256(b"thole.record.v1\0" + place + record).digest()
def wrong_links(lines):
    for line in map(json.loads, lines):
        if line["schema"] == "thole.export.history.v1":
            history, before = line, None
        elif line["schema"] == "thole.export.record.v1":
            record = base64.b64decode(line["record"])
            if before and before != {n: value for n, value, _, _ in fields(record)}.get(17):
                yield f"{history['instance']} #{line['sequence']}: names another record than the one before it"
            before = record_hash(history["namespace"], int(history["partition"]), record)
def wrong_vectors(vectors):
    for v in vectors:
        got = record_hash(v["namespace"], v["partition"], bytes.fromhex(v["record"])).hex()
        yield from [f"{v['name']}: {got}, not {v['hash']}"] * (got != v["hash"])
if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    texts = [open(path).read() for path in sys.argv[1:]]
    wrong = [wrong_vectors(json.loads(text)) if text[:1] == "[" else wrong_links(text.splitlines()) for text in texts]
    wrong = [why for each in wrong for why in each]
    sys.exit("\n".join(wrong) or 0)
