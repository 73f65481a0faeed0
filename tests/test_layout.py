"""The floor plan: one name per module and class, private modules stay in their folder, retired names are gone."""

import ast
import io
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "secateur"
MODULES = sorted(PACKAGE.rglob("*.py"))
RETIRED = {
    *("pull", "chance", "loud", "Bill", "Judge", "Ruler", "Shop", "Bought", "Basket", "basket", "stand_in"),
    *("stand_ins", "with_stand_ins"),
    *("Evidence", "evidence", "Sample", "too_far", "distant", "asks_often", "Trial", "_Round", "_Tried", "settle"),
    *("settled_on", "aiming_at", "judges_ensemble", "takes_levels", "cannot_change", "no_prices", "no_sample"),
    *("by_size", "Post", "Parcel", "Said", "Memory"),
}
"""Names that had no meaning outside this project; CONTRIBUTING.md has the glossary."""


def place(file):
    return file.relative_to(PACKAGE).as_posix()


def test_no_two_modules_share_a_name():
    found = defaultdict(list)
    for file in MODULES:
        folder = place(file).partition("/")[0]
        # A kernel has the name of the solver it serves, a command that of its verb, and libraries have the same steps.
        space = {"kernels": "kernels", "libraries": str(file.parent)}.get(folder, "")
        space = "commands" if file.parent.name == "commands" else space
        if file.stem not in ("__init__", "base"):
            found[space, file.stem].append(place(file))
    assert [files for files in found.values() if len(files) > 1] == []


def test_no_two_public_classes_share_a_name():
    found = defaultdict(list)
    for file in MODULES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(place(file))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_private_modules_are_imported_only_inside_their_folder():
    for file in MODULES:
        importer = ["secateur", *file.relative_to(PACKAGE).with_suffix("").parts]
        for module in imports(file):
            parts = module.split(".")
            private = next((i for i, part in enumerate(parts) if part.startswith("_")), None)
            if private is not None and parts[private] != "_util":
                assert importer[:private] == parts[:private], (place(file), module)


def test_kernels_have_at_most_12_parameters():
    functions = {
        f"{place(file)}: {node.name}": node.args
        for file in MODULES
        if place(file).startswith("kernels/")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    counts = {name: len(args.posonlyargs + args.args + args.kwonlyargs) for name, args in functions.items()}
    assert len(counts) > 100
    assert {name: count for name, count in counts.items() if count > 12} == {}


def imports(file):
    """Yield the modules a file imports from the package."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("secateur"):
            yield node.module
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if (ROOT / "src" / name.replace(".", "/")).with_suffix(".py").exists())


def test_retired_names_are_gone():
    for folder in ("src", "tests", "benchmarks", "examples", "docs"):
        for file in (ROOT / folder).rglob("*.py"):
            tokens = tokenize.generate_tokens(io.StringIO(file.read_text()).readline)
            used = {token.string for token in tokens if token.type == tokenize.NAME}
            assert used & RETIRED == set(), file
