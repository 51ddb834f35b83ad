#!/usr/bin/env python3
"""nats_creds.py FOLDER: an operator, an account and a user of NATS, as nsc makes them: server.conf for a nats-server that
trusts the operator, and good.creds of the user; other.creds is of a user whose account the operator has not signed.
Signs with the openssl command. Exit code 77: it cannot."""
import base64
import hashlib
import json
import subprocess
import sys

FOLDER = sys.argv[1]
OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def base32(raw):
    return base64.b32encode(raw + crc16(raw).to_bytes(2, "little")).decode().rstrip("=")


def base64url(raw):
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def openssl(*words):
    done = subprocess.run(("openssl",) + words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(77)
    return done.stdout


class Key:
    def __init__(self, name, kind):
        self.path = f"{FOLDER}/{name}.pem"
        openssl("genpkey", "-algorithm", "ed25519", "-out", self.path)
        public = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")[-32:]
        private = openssl("pkey", "-in", self.path, "-outform", "DER")[-32:]
        self.id = base32(bytes([kind]) + public)
        self.seed = base32(bytes([18 << 3 | kind >> 5, (kind & 31) << 3]) + private)

    def sign(self, text):
        with open(f"{self.path}.text", "wb") as file:
            file.write(text)
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", f"{self.path}.text")


def jwt(issuer, subject, name, claims):
    body = {"iat": 1700000000, "iss": issuer.id, "sub": subject.id, "name": name, "nats": dict(claims, version=2)}
    body["jti"] = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    parts = [base64url(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, body)]
    return ".".join(parts + [base64url(issuer.sign(".".join(parts).encode()))])


def write(name, text):
    with open(f"{FOLDER}/{name}", "w", encoding="ascii") as file:
        file.write(text)


def creds(name, account):
    user = Key(name, USER)
    token = jwt(account, user, name, {"type": "user", "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}})
    write(f"{name}.creds", f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
          f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")


try:
    LIMITS = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage",
                            "disk_storage", "streams", "consumer"), -1)
    operator, account, system, other = Key("operator", OPERATOR), Key("account", ACCOUNT), Key("system", ACCOUNT), Key("other_account", ACCOUNT)
    accounts = {key.id: jwt(operator, key, name, {"type": "account", "limits": dict(LIMITS, wildcards=True)})
                for name, key in (("account", account), ("system", system))}
    preload = "".join(f"  {name}: {token}\n" for name, token in accounts.items())
    write("server.conf", f"operator: {jwt(operator, operator, 'operator', {'type': 'operator'})}\n"
          f"system_account: {system.id}\nresolver: MEMORY\nresolver_preload {{\n{preload}}}\n")
    creds("good", account)
    creds("other", other)
except FileNotFoundError:
    sys.exit(77)
