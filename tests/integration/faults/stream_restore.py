#!/usr/bin/env python3
"""Backs a stream up, removes it, and restores it with one field of its configuration changed: what
`nats stream backup`, `nats stream rm` and `nats stream restore --config` do.
usage: stream_restore.py nats://[USER:PASSWORD@]HOST:PORT STREAM FIELD JSON"""
import json
import socket
import sys
from urllib.parse import urlsplit


class Nats:
    def __init__(self, url):
        at = urlsplit(url)
        self.socket = socket.create_connection((at.hostname, at.port), 10)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        who = {"verbose": False, "headers": True, "user": at.username, "pass": at.password}
        self.send(f"CONNECT {json.dumps(who)}\r\nSUB answers 1\r\nSUB chunks 2\r\n".encode())

    def send(self, data):
        self.socket.sendall(data)

    def publish(self, subject, body=b"", reply=""):
        self.send(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")

    def next(self):
        """Subject, reply, headers, body of the next message."""
        while True:
            words = self.file.readline().decode().split()
            if not words:
                sys.exit("the connection is gone")
            if words[0] == "PING":
                self.send(b"PONG\r\n")
            elif words[0] == "-ERR":
                sys.exit(" ".join(words))
            elif words[0] in ("MSG", "HMSG"):
                sizes = words[-2:] if words[0] == "HMSG" else ["0", words[-1]]
                fixed = 5 if words[0] == "HMSG" else 4
                reply = words[3] if len(words) > fixed else ""
                head, size = int(sizes[0]), int(sizes[1])
                data = self.file.read(size + 2)[:size]
                return words[1], reply, data[:head], data[head:]

    def ask(self, subject, body=b""):
        self.publish(subject, body, "answers")
        subject, _, _, answer = self.next()
        if subject != "answers":
            sys.exit(f"a message of {subject}, not the answer")
        said = json.loads(answer) if answer else {}
        if "error" in said:
            sys.exit(json.dumps(said["error"]))
        return said


def main():
    url, stream, field, value = sys.argv[1:]
    nats = Nats(url)
    api = "$JS.API.STREAM."
    made = nats.ask(api + "SNAPSHOT." + stream, b'{"deliver_subject":"chunks","no_consumers":true,"chunk_size":65536}')
    chunks = []
    while True:
        _, reply, _, data = nats.next()
        if not data:
            break
        chunks.append(data)
        if reply:
            nats.publish(reply)
    nats.ask(api + "DELETE." + stream)
    config = made["config"]
    config[field] = json.loads(value)
    request = {"config": config, "state": made["state"]}
    to = nats.ask(api + "RESTORE." + stream, json.dumps(request).encode())["deliver_subject"]
    for chunk in chunks:
        nats.ask(to, chunk)
    there = nats.ask(to)
    print(there["config"][field], there["state"]["messages"])


main()
