"""Generate the gallery and the page of examples from the docstrings, pictures and code in examples/.

`examples/plot_<name>.py` is in the gallery, with the committed pictures made by `docs/site/pictures.py`; all other
examples are on one page, as code.
"""

import ast
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from tables import see_also

from secateur.solvers import SOLVERS

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs"
GALLERY = """# Gallery

Each picture is made by the example below it, which the tests run. Copy one and replace the model by yours.
"""
EXAMPLES = """# Examples

Complete scripts from the folder `examples/`; the tests run all of them.
"""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the gallery and the page of examples."""
    scripts = sorted((ROOT / "examples").glob("*.py"))
    plots = [script for script in scripts if script.stem.startswith("plot_")]
    others = [script for script in scripts if script not in plots]
    gallery = GALLERY + thumbnails(plots) + "".join(section(script) for script in plots)
    examples = EXAMPLES + "".join(section(script) for script in others)
    for page, text in (("gallery/index.md", gallery), ("gallery/examples.md", examples)):
        files.append(File.generated(config, page, content=text))
    return files


def thumbnails(scripts: list[Path]) -> str:
    """Return a grid of small pictures that lead to the sections of the examples."""
    cells = []
    for script in scripts:
        first = pictures(script.stem)[0]
        caption = title(script).partition(":")[0]
        cells.append(f'<a href="#{script.stem}"><img src="../{first}" alt="" loading="lazy">{caption}</a>')
    return '\n<div class="thumbnails">\n' + "\n".join(cells) + "\n</div>\n"


def title(script: Path) -> str:
    """Return the first line of the docstring of an example."""
    return (ast.get_docstring(ast.parse(script.read_text())) or script.stem).partition("\n")[0].rstrip(".")


def section(script: Path) -> str:
    """Return the section of an example: title, description, pictures and code."""
    description = (ast.get_docstring(ast.parse(script.read_text())) or "").partition("\n")[2]
    code = script.read_text().split('"""', 2)[2].strip() + "\n"
    shown = "".join(f"![{title(script)}](../{picture})\n\n" for picture in pictures(script.stem))
    name = script.stem.removeprefix("plot_")
    if name in SOLVERS:
        shown += f"{see_also(name, 'gallery', 'example')}\n\n"
    fence = f'```python title="examples/{script.name}"\n{code}```\n'
    if script.stem.startswith("plot_"):
        fence = '??? example "The code"\n\n' + "".join(f"    {line}".rstrip() + "\n" for line in fence.splitlines())
    return f"\n## {title(script)} {{ #{script.stem} }}\n\n{description.strip()}\n\n{shown}{fence}"


def pictures(stem: str) -> list[str]:
    """Return the committed pictures of an example, relative to docs/."""
    name = stem.removeprefix("plot_")
    found = [PICTURES / "methods" / "pictures" / f"{name}.png", *sorted((PICTURES / "gallery").glob(f"{name}_*.png"))]
    return [picture.relative_to(PICTURES).as_posix() for picture in found if picture.exists()]
