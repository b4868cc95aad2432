"""Write the JSON schemas that kubeconform reads, from Kubernetes' OpenAPI and from CustomResourceDefinitions.

    python tools/kube/schemas.py FOLDER SWAGGER.json CRD.yaml...

FOLDER gets a file for each kind, KIND-GROUP-VERSION.json in lower case with the first part of the group. An object has only the properties that its schema
names, so that a misspelt one is refused, as `kubectl apply --validate=strict` does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ANY_NUMBER = {"anyOf": [{"type": "string"}, {"type": "number"}]}


def closed(schema: Any) -> Any:
    """Return a schema, and those in it, with the properties that they name and no others."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return ANY_NUMBER
    made = {
        name: closed(value)
        for name, value in schema.items()
        if name != "properties" and not name.startswith("x-kubernetes-")
    }
    properties = schema.get("properties")
    if properties is not None:  # what a property is called is no word of a schema
        made["properties"] = {name: closed(value) for name, value in properties.items()}
        if "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    return made


def write(folder: Path, kind: str, group: str, version: str, schema: Any) -> None:
    """Write the schema of a kind."""
    name = "-".join(part for part in (kind, group.partition(".")[0], version) if part).lower()
    (folder / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")


def of_kubernetes(folder: Path, swagger: Path) -> None:
    """Write the schemas of the kinds that Kubernetes has."""
    definitions = json.loads(swagger.read_text(encoding="utf-8"))["definitions"]
    own = {name: closed(definition) for name, definition in definitions.items()}
    own["io.k8s.apimachinery.pkg.api.resource.Quantity"] = ANY_NUMBER
    (folder / "definitions.json").write_text(json.dumps({"definitions": own}), encoding="utf-8")
    for name, definition in definitions.items():
        for one in definition.get("x-kubernetes-group-version-kind", ()):
            reference = {"$ref": f"definitions.json#/definitions/{name}"}
            write(folder, one["kind"], one["group"], one["version"], reference)


def of_definition(folder: Path, definition: dict[str, Any]) -> None:
    """Write the schemas of a kind that a CustomResourceDefinition adds, for each of its versions."""
    spec = definition["spec"]
    for version in spec["versions"]:
        schema = closed(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {
            "$ref": "definitions.json#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        }
        write(folder, spec["names"]["kind"], spec["group"], version["name"], schema)


def main() -> None:
    """Write the folder."""
    folder, swagger, *definitions = map(Path, sys.argv[1:])
    folder.mkdir(parents=True)
    of_kubernetes(folder, swagger)
    for file in definitions:
        of_definition(folder, yaml.safe_load(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
