#!/usr/bin/env python3
"""Reads what `helm template` prints and checks what no schema of Kubernetes says. check_render.py FILE...

Names fit, labels and environment are strings, selectors match their Pods, every Pod is as the restricted standard of
Pod Security wants it and has no token, every Secret and volume that is mounted exists, alerts and dashboard use metrics
that docs/metrics.md has.
"""
import json
import pathlib
import re
import sys

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
WORKLOADS = {"Deployment", "StatefulSet", "Job"}
errors = []


def fail(where, text):
    errors.append(f"{where}: {text}")


def check_labels(where, labels):
    for key, value in labels.items():
        if not isinstance(value, str) or not LABEL_VALUE.fullmatch(value):
            fail(where, f"label {key} is {value!r}")


def check_container(where, container, volumes):
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False or security.get("readOnlyRootFilesystem") is not True:
        fail(where, "may escalate, or write to its root")
    if security.get("capabilities", {}).get("drop") != ["ALL"]:
        fail(where, "keeps capabilities")
    for entry in container.get("env", []):
        if "value" in entry and not isinstance(entry["value"], str):
            fail(where, f"{entry['name']} is {entry['value']!r}")
        if "PASSWORD" in entry["name"] and "value" in entry:
            fail(where, f"{entry['name']} stands in the Pod")
    names = [entry["name"] for entry in container.get("env", [])]
    if container["name"] == "binder" and any("postgres" in n.lower() or n.startswith("PG") for n in names):
        fail(where, "is told where Postgres is, and needs none")
    if len(names) != len(set(names)):
        fail(where, f"a variable twice: {sorted(n for n in names if names.count(n) > 1)}")
    if not container.get("resources", {}).get("requests"):
        fail(where, "requests no resources")
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            fail(where, f"volume {mount['name']} does not exist")
    used = {mount["mountPath"] for mount in container.get("volumeMounts", [])}
    for entry in container.get("env", []):
        path = str(entry.get("value", ""))
        if path.startswith("/etc/thole/") and path.rsplit("/", 1)[0] not in used:
            fail(where, f"{entry['name']} is {path}, which is not mounted")


def check_pod(where, pod):
    spec, labels = pod["spec"], pod["metadata"].get("labels", {})
    check_labels(where, labels)
    security = spec.get("securityContext", {})
    if security.get("runAsNonRoot") is not True or security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        fail(where, "may run as root, or without seccomp")
    if spec.get("automountServiceAccountToken") is not False:
        fail(where, "gets a token of its account")
    volumes = [volume["name"] for volume in spec.get("volumes", [])]
    if len(volumes) != len(set(volumes)):
        fail(where, "a volume twice")
    for container in spec.get("initContainers", []) + spec["containers"]:
        check_container(f"{where} {container['name']}", container, volumes)


def matches(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


def check_document(document):
    where = f"{document['kind']}/{document['metadata']['name']}"
    name = document["metadata"]["name"]
    if not isinstance(name, str) or not DNS_LABEL.fullmatch(name):
        fail(where, "a name that Kubernetes refuses")
    check_labels(where, document["metadata"].get("labels", {}))
    for key, value in document["metadata"].get("annotations", {}).items():
        if not isinstance(value, str):
            fail(where, f"annotation {key} is {value!r}")
    if document["kind"] == "Pod":
        check_pod(where, document)
    if document["kind"] == "CronJob":
        check_pod(where, document["spec"]["jobTemplate"]["spec"]["template"])
    if document["kind"] in WORKLOADS:
        check_pod(where, document["spec"]["template"])
        selector = document["spec"].get("selector", {}).get("matchLabels", {})
        if not matches(selector, document["spec"]["template"]["metadata"]["labels"]):
            fail(where, "its selector does not match its Pods")
        if any("version" in key or "chart" in key for key in selector):
            fail(where, "its selector changes with the version")


def check_targets(documents):
    """Services, budgets and autoscalers have something to select."""
    pods = [d["spec"]["template"]["metadata"]["labels"] for d in documents if d["kind"] in WORKLOADS]
    names = {(d["kind"], d["metadata"]["name"]) for d in documents}
    seen = set()
    for document in documents:
        where = f"{document['kind']}/{document['metadata']['name']}"
        if (document["kind"], document["metadata"]["name"]) in seen:
            fail(where, "twice")
        seen.add((document["kind"], document["metadata"]["name"]))
        selector = document.get("spec", {}).get("selector", {}) if document["kind"] in ("Service", "PodDisruptionBudget") else None
        if selector is not None and not any(matches(selector.get("matchLabels", selector), labels) for labels in pods):
            fail(where, "selects nothing")
        target = document.get("spec", {}).get("scaleTargetRef")
        if target and ("Deployment", target["name"]) not in names:
            fail(where, f"scales {target['name']}, which does not exist")
        if target:
            deployment = next(d for d in documents if d["kind"] == "Deployment" and d["metadata"]["name"] == target["name"])
            if "replicas" in deployment["spec"]:
                fail(where, "its Deployment sets replicas, too")


ALONE = {"nats", "postgres", "migration"}  # servers of an evaluation; Jobs, which end


def check_policies(documents):
    """Where there are policies, each kind of Pod has one, and the port that it lets in."""
    policies = [d for d in documents if d["kind"] == "NetworkPolicy"]
    for document in documents if policies else []:
        spec = document["spec"].get("jobTemplate", document)["spec"] if document["kind"] in WORKLOADS | {"CronJob"} else None
        template = spec and spec["template"]
        component = template and template["metadata"]["labels"].get("app.kubernetes.io/component")
        if component is None or component in ALONE:
            continue
        where = f"{document['kind']}/{document['metadata']['name']}"
        found = [p for p in policies if selects(p["spec"]["podSelector"], component)]
        if len(found) != 1:
            fail(where, f"{len(found)} network policies")
        ports = {p["name"] for c in template["spec"]["containers"] for p in c.get("ports", [])}
        for rule in found[0]["spec"]["ingress"] if found else []:
            for port in rule["ports"]:
                if port["port"] not in ports:
                    fail(where, f"its network policy lets in {port['port']}, which it does not have")


def selects(selector, component):
    key = "app.kubernetes.io/component"
    if selector.get("matchLabels", {}).get(key, component) != component:
        return False
    return all(component in e["values"] for e in selector.get("matchExpressions", []) if e["key"] == key)


def known_metrics():
    text = (TOP / "docs/metrics.md").read_text()
    names = set(re.findall(r"`(thole_[a-z_]+)`", text))
    for name, kind in re.findall(r"\| `(thole_[a-z_]+)` \| (\w+) \|", text):
        if kind == "histogram":
            names |= {name + "_bucket", name + "_sum", name + "_count"}
    return names


def check_metrics(where, text):
    for name in sorted(set(re.findall(r"\b(thole_[a-z_]+)\b", text)) - known_metrics()):
        fail(where, f"{name} is not in docs/metrics.md")


def check_monitoring(document):
    where = f"{document['kind']}/{document['metadata']['name']}"
    if document["kind"] == "PrometheusRule":
        runbook = (TOP / "docs/runbook.md").read_text()
        for group in document["spec"]["groups"]:
            for rule in group["rules"]:
                check_metrics(f"{where} {rule['alert']}", rule["expr"])
                if rule["alert"].startswith("Thole") and f"`{rule['alert']}`" not in runbook:
                    fail(where, f"docs/runbook.md does not say what to do when {rule['alert']} fires")
    if document["kind"] == "ConfigMap" and "thole.json" in document.get("data", {}):
        for panel in json.loads(document["data"]["thole.json"])["panels"]:
            for target in panel["targets"]:
                check_metrics(f"{where} {panel['title']}", target["expr"])


def main(paths):
    for path in paths:
        before = len(errors)
        documents = [d for d in yaml.safe_load_all(pathlib.Path(path).read_text()) if d]
        for document in documents:
            check_document(document)
            check_monitoring(document)
        check_targets(documents)
        check_policies(documents)
        errors[before:] = [f"{pathlib.Path(path).name}: {text}" for text in errors[before:]]
    print("\n".join(errors), file=sys.stderr)
    return 1 if errors else 0


sys.exit(main(sys.argv[1:]))
