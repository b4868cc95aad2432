"""The manifest has the form that its schema describes to porters."""

from __future__ import annotations

import json

import jsonschema
from support.spec_rules import ROOT


def test_the_manifest_has_the_form_of_its_schema() -> None:
    schema, manifest = (
        json.loads((ROOT / "lua" / name).read_text(encoding="utf-8"))
        for name in ("manifest.schema.json", "manifest.json")
    )
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    assert not [error.message for error in validator.iter_errors(manifest)]
    types = {
        one
        for option in schema["$defs"]["field"]["properties"]["type"]["oneOf"]
        for one in option.get("enum", [option.get("const")])
    }
    assert types - set(json.dumps(manifest).replace(",", "").split('"')) == set(), "a type that no field has"
