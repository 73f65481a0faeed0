"""Render the dict of a report as one HTML file: a template with inline style and script, and the dict as JSON."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

SCRIPTS = ("basics", "table", "curve", "trees", "features", "words", "main")


def write_page(facts: Mapping[str, Any]) -> str:
    """Return the HTML page of a report.

    Its content security policy allows only the inline script and style, by their digests, and loads no resources.
    Names from models and data are never parsed as markup: they are contained in the JSON, where "<" is escaped, and the
    script inserts them as text.
    """
    script = '"use strict";\n{\n' + "\n".join(_part(f"{name}.js") for name in SCRIPTS) + "}\n"
    style = _part("page.css")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(f"{facts['model']['type']} pruned by secateur"),
        "style": style,
        "script": script,
        "facts": escaped_json(facts),
    }
    page = _part("page.html")
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)


def escaped_json(facts: Mapping[str, Any]) -> str:
    """Return JSON that is safe inside a script element, whatever strings it contains."""
    text = json.dumps(facts, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return files("secateur.reporting").joinpath("page_files", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
