"""Hostile names: markup, code, terminal commands, formulas, very long names, right-to-left text."""

NAMES = {
    "script": "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>",
    "end of elements": "</script></style></title></textarea>--><!--<script>",
    "quotes": "\"' onmouseover=window.hacked=1 x='`&quot;&#39;",
    "lines": "a\nb\r\nc\x0bd\x85e\u2028f",
    "escape sequences": "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[8m\x9b5m",
    "control characters": "a\x00b\x01c\x08d\x7fe\x1f",
    "right to left": "\u202egnp.exe\u2066\u200f \u05d0\u05d1\u05d2 \u0639\u0631\u0628",
    "10 kB": "n" * 10_000,
    "markup of the terminal": "[red]x[/red][/] :smile: [link=file:///x]y[/link] \\[bold]",
    "formula": "$\\frac{1}{$ x_{^ $$",
    "format": "{0} {point} {{script}} %s %(x)s {__class__}",
    "spreadsheet": "=cmd|' /C calc'!A0",
    "hidden": "__private",
}


def file_name(name: str) -> str:
    """Return a name without characters that file names cannot contain."""
    return (
        name.replace("/", "\u2215")
        .replace("\x00", "\udcff")
        .encode("utf-8", "surrogateescape")[:150]
        .decode("utf-8", "surrogateescape")
    )
