"""Generate the gallery and the page of examples from the docstrings, pictures and code in examples/.

`examples/plot_<name>.py` is in the gallery, with the committed pictures made by `docs/site/pictures.py`; all other
examples are on one page, as code.
"""

import ast
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

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
    for page, introduction, shown in (("gallery/index.md", GALLERY, plots), ("gallery/examples.md", EXAMPLES, others)):
        text = introduction + "".join(section(script) for script in shown)
        files.append(File.generated(config, page, content=text))
    return files


def section(script: Path) -> str:
    """Return the section of an example: title, description, pictures and code."""
    title, _, description = (ast.get_docstring(ast.parse(script.read_text())) or script.stem).partition("\n")
    code = script.read_text().split('"""', 2)[2].strip() + "\n"
    shown = "".join(f"![{title}](../{picture})\n\n" for picture in pictures(script.stem))
    fence = f'```python title="examples/{script.name}"\n{code}```\n'
    if script.stem.startswith("plot_"):
        fence = '??? example "The code"\n\n' + "".join(f"    {line}".rstrip() + "\n" for line in fence.splitlines())
    return f"\n## {title.rstrip('.')} {{ #{script.stem} }}\n\n{description.strip()}\n\n{shown}{fence}"


def pictures(stem: str) -> list[str]:
    """Return the committed pictures of an example, relative to docs/."""
    name = stem.removeprefix("plot_")
    found = [PICTURES / "methods" / "pictures" / f"{name}.png", *sorted((PICTURES / "gallery").glob(f"{name}_*.png"))]
    return [picture.relative_to(PICTURES).as_posix() for picture in found if picture.exists()]
