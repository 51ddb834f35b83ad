#!/usr/bin/env python3
"""forge_export.py FORGERY FORM <EXPORT >FORGED: a binary export (docs/wire.md), changed as somebody would who
wants nobody to see it: with counts and a manifest that fit. FORM: binary or jsonl. The instance with the most
records is the victim. Checkpoints are kept as they are, but for the forgery "unproved"."""
import base64, hashlib, json, sys


def read(text):
    """Histories, [namespace, partition, id, [[sequence, record], ...]], and sections with checkpoints"""
    histories, checkpoints, at = [], [], 0
    while at < len(text):
        end = text.index(b"\n", at)
        words = text[at:end].split(b" ")
        at = end + 1
        if words[1] != b"history":  # a section
            checkpoints += [text[at:at + int(words[3])]] * (words[1] == b"checkpoint")
            at += int(words[3]) + 1
            continue
        records = []
        while True:
            end = text.index(b"\n", at)
            line = text[at:end].split(b" ")
            at = end + 1
            if line[0] == b"end":
                break
            records.append([int(line[0]), text[at:at + int(line[1])]])
            at += int(line[1]) + 1
        histories.append([words[3], words[4], words[5], records])
    return histories, checkpoints


def binary(history):
    out = b"thole history 1 %s %s %s\n" % tuple(history[:3])
    for sequence, record in history[3]:
        out += b"%d %d\n%s\n" % (sequence, len(record), record)
    return out + b"end %d\n" % len(history[3])


def lines(history):
    yield {"schema": "thole.export.history.v1", "namespace": history[0].decode(), "partition": int(history[1]),
           "instance": history[2].decode()}
    for sequence, record in history[3]:
        yield {"schema": "thole.export.record.v1", "sequence": sequence,
               "record": base64.b64encode(record).decode()}
    yield {"schema": "thole.export.end.v1", "records": len(history[3])}


def write(histories, checkpoints, form):
    body = b"".join(binary(h) for h in histories)
    manifest = {"instances": len(histories), "records": sum(len(h[3]) for h in histories),
                "sha256": hashlib.sha256(body).hexdigest(), "complete": True, "missing_count": 0, "missing": []}
    if form == "binary":
        text = json.dumps(manifest).encode()
        body += b"".join(b"thole checkpoint 1 %d\n%s\n" % (len(c), c) for c in checkpoints)
        sys.stdout.buffer.write(body + b"thole manifest 1 %d\n%s\n" % (len(text), text))
        return
    for history in histories:
        for line in lines(history):
            print(json.dumps(line))
    for checkpoint in checkpoints:
        print(checkpoint.decode())
    print(json.dumps({"schema": "thole.export.manifest.v1", **manifest}))


def flip(record, at):
    return record[:at] + bytes([record[at] ^ 1]) + record[at + 1:]


def without_hash(record):
    """Without field 16, previous: its tag is 82 01, its length 20."""
    at = record.index(b"\x82\x01\x20")
    return record[:at] + record[at + 35:]


def forge(name, histories):
    # the longest: on a busy machine several events come with one record
    victim, other = sorted(histories, key=lambda history: -len(history[3]))[:2]
    records, middle = victim[3], len(victim[3]) // 2
    if name == "flip":
        records[middle][1] = flip(records[middle][1], records[middle][1].rindex(b"in"))
    elif name == "flip_last":
        records[-1][1] = flip(records[-1][1], records[-1][1].rindex(b"in"))
    elif name == "hash":
        records[middle][1] = without_hash(records[middle][1])
    elif name == "garbage":
        records[middle][1] = b"garbage"
    elif name == "cut_off":
        records.pop()
    elif name == "beginning":
        del records[0]
    elif name == "take_out":
        del records[middle]
    elif name == "swap":
        records[1][1], records[2][1] = records[2][1], records[1][1]
    elif name == "twice":
        records.insert(middle, [records[middle][0] - 1, records[middle][1]])
    elif name == "other_record":
        records[middle][1] = other[3][middle][1]
    elif name == "moved":
        records[middle][0] += 1
    elif name == "rename":
        for record in records:
            record[1] = record[1].replace(victim[2], victim[2][::-1])
        victim[2] = victim[2][::-1]
    elif name == "name":
        victim[2] = b"somebody"
    elif name == "namespace":
        for history in histories:
            history[0] = b"elsewhere"
    elif name == "partition":
        victim[1] = b"7"
    elif name == "exchange":
        victim[3], other[3] = other[3], victim[3]
    elif name == "payload":
        for record in records:
            record[1] = record[1].replace(b"in", b"no")
    elif name == "all_but_one":
        del records[1:]
    elif name == "again":
        records += [[s + 1000, r] for s, r in records[1:]]
    elif name not in ("nothing", "unproved"):
        sys.exit("no such forgery: " + name)


histories, checkpoints = read(sys.stdin.buffer.read())
forge(sys.argv[1], histories)
if sys.argv[1] == "unproved":
    checkpoints = [json.dumps({**json.loads(c), "leaves": [], "proof": []}).encode() for c in checkpoints]
write(histories, checkpoints, sys.argv[2])
