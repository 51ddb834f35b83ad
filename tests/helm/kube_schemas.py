#!/usr/bin/env python3
"""Writes the schemas that kubeconform reads: kube_schemas.py FOLDER SWAGGER.json CRD.yaml...

One file a kind, as kubeconform names them with {{.ResourceKind}}{{.KindSuffix}}; unknown fields are refused.
"""
import json
import pathlib
import sys

import yaml


def strict(node):
    """Objects with known fields take no others."""
    if isinstance(node, dict):
        if "properties" in node and "additionalProperties" not in node and not node.get("x-kubernetes-preserve-unknown-fields"):
            node["additionalProperties"] = False
        for value in node.values():
            strict(value)
    elif isinstance(node, list):
        for value in node:
            strict(value)


def ints_or_strings(definitions):
    for name in ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "io.k8s.apimachinery.pkg.api.resource.Quantity"):
        definitions[name] = {"type": ["string", "integer", "number"]}


def write(folder, kind, group, version, schema):
    suffix = "-".join([*([group.split(".")[0]] if group else []), version])
    (folder / f"{kind.lower()}-{suffix}.json").write_text(json.dumps(schema))


def main(folder, swagger, *crds):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    definitions = json.loads(pathlib.Path(swagger).read_text())["definitions"]
    ints_or_strings(definitions)
    strict(definitions)
    for name, schema in definitions.items():
        for entry in schema.get("x-kubernetes-group-version-kind", []):
            if len(schema["x-kubernetes-group-version-kind"]) == 1 and "metadata" in schema.get("properties", {}):
                write(folder, entry["kind"], entry["group"], entry["version"],
                      {"$ref": f"#/definitions/{name}", "definitions": definitions})
    for path in crds:
        for crd in filter(None, yaml.safe_load_all(pathlib.Path(path).read_text())):
            for version in crd["spec"]["versions"]:
                schema = version["schema"]["openAPIV3Schema"]
                strict(schema)
                schema["properties"]["metadata"] = {"type": "object"}
                write(folder, crd["spec"]["names"]["kind"], crd["spec"]["group"], version["name"], schema)


main(*sys.argv[1:])
