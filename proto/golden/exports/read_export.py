#!/usr/bin/env python3
"""Reads what `thole export` wrote, in either form, checks it against its manifests, and prints a line of JSON for each
history; exit code 1 and why, if one is wrong. Written from docs/wire.md alone. read_export.py FILE..."""
import base64, hashlib, json, sys, urllib.parse
def need(truth, why):
    if not truth:
        raise ValueError(why)
def body(file, length):
    data = file.read(int(length))
    need(len(data) == int(length) and file.read(1) == b"\n", "cut off")
    return data
def binary(file):  # as the documents of the other form
    while line := file.readline():
        words = line.decode().split()
        need(line.endswith(b"\n") and words[0] == "thole" and words[2] == "1", "not an export of form 1")
        if words[1] != "history":
            yield words[1], json.loads(body(file, words[3]))
            continue
        yield "history", {"namespace": words[3], "partition": words[4], "instance": urllib.parse.unquote(words[5])}
        while not (line := file.readline()).startswith(b"end "):
            sequence, length = line.split()
            yield "record", {"sequence": int(sequence), "record": base64.b64encode(body(file, length))}
        yield "end", {"records": int(line[4:])}
def documents(file):
    for line in file:
        document = json.loads(line)
        name = document["schema"].removeprefix("thole.export.").removesuffix(".v1")
        need(line.endswith(b"\n") and document["schema"] in (f"thole.export.{name}.v1", "thole.export.v1"), "not an export of form 1")
        yield "export" if name == "v1" else name, document
def histories(file):
    first, digest, totals, history, manifest = file.peek(1)[:1], hashlib.sha256(), [0, 0], None, True
    need(first, "empty")
    for kind, it in documents(file) if first == b"{" else binary(file):
        need((history is not None) == (kind in ("record", "end")), "a history without its end, or its beginning")
        if kind == "history":
            history = {"instance": it["instance"], "records": []}
            token = urllib.parse.quote(it["instance"], safe="").replace(".", "%2E")
            digest.update(f"thole history 1 {it['namespace']} {it['partition']} {token}\n".encode())
        elif kind == "record":
            record = base64.b64decode(it["record"], validate=True)
            history["records"].append([it["sequence"], record.hex()])
            digest.update(f"{it['sequence']} {len(record)}\n".encode() + record + b"\n")
        elif kind == "end":
            need(it["records"] == len(history["records"]), "a history that lacks records")
            digest.update(f"end {it['records']}\n".encode())
            yield history
            totals, history = [totals[0] + 1, totals[1] + it["records"]], None
        elif kind == "manifest":
            need([it["instances"], it["records"], it["sha256"]] == totals + [digest.hexdigest()], "not as its manifest says")
            digest, totals, manifest = hashlib.sha256(), [0, 0], True
        elif kind == "export":
            manifest = bool(need(manifest, "an export without its manifest"))  # none yet
    need(history is None and manifest, "a history without its end, or an export without its manifest")
code = 0
for path in sys.argv[1:]:
    try:
        print("\n".join([json.dumps(history) for history in histories(open(path, "rb"))]))
    except (ValueError, LookupError) as why:
        code = print(f"{path}: wrong: {why}") or 1
sys.exit(code)
