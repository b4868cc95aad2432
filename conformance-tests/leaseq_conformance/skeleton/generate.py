"""Write the scripts of the protocol as a module of your language: python generate.py TEMPLATE OUTPUT.

Only the template is of a language. `literal` writes texts and lists as JSON does, which most languages read; give a language where a
text in quotes is more than that (PHP, Ruby, Kotlin: `$` and `#{`) a filter that escapes it.
"""

import json
import sys
from pathlib import Path

import jinja2

template, output = map(Path, sys.argv[1:])
manifest = json.loads(Path(__file__).with_name("manifest.json").read_text("utf-8"))
environment = jinja2.Environment(
    trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
)
environment.filters["literal"] = lambda value: json.dumps(value, ensure_ascii=False)
output.write_text(environment.from_string(template.read_text("utf-8")).render(manifest), "utf-8")
