"""The floor plan: one name per module and class, private modules stay in their folder, retired names are gone.

Only `libraries/` knows which library a model is from, and losses, costs and solvers do not know each other's classes.
"""

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
    *("by_size", "Post", "Parcel", "Said", "Memory", "Distant", "afar", "from_afar"),
}
"""Names that had no meaning outside this project; CONTRIBUTING.md has the glossary."""
RETIRED_WORDS = {"said", "told"}
"""Words that are part of no identifier: an output, a message or a prediction is named as such."""


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
    for file in python_files("src", "tests", "benchmarks", "examples", "docs"):
        assert identifiers(file) & RETIRED == set(), file


def test_retired_words_are_in_no_identifier():
    for file in python_files("src", "tests", "benchmarks"):
        words = {word for name in identifiers(file) for word in name.lower().split("_")}
        assert words & RETIRED_WORDS == set(), file


def python_files(*folders):
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def identifiers(file):
    """Return all names in the code of a file; comments and strings do not count."""
    tokens = tokenize.generate_tokens(io.StringIO(file.read_text()).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def test_outside_libraries_no_decision_depends_on_the_library_of_a_model():
    found = [
        (place(file), ast.unparse(node))
        for file in MODULES
        if not place(file).startswith("libraries/")
        for node in ast.walk(ast.parse(file.read_text()))
        if compares_library(node)
        or probes_adapter(node, file)
        or any(n.endswith("Adapter") for n in classes_checked(node))
    ]
    assert found == []


def compares_library(node):
    """Return whether a library's name, or the name of a model's class, is compared or looked up."""
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
    elif isinstance(node, ast.Subscript):
        operands = [node.slice]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        operands = [node.func.value, *node.args] if node.func.attr in ("get", "startswith", "endswith") else []
    else:
        operands = []
    return any(names_library(operand) or is_class_of_model(operand) for operand in operands)


def names_library(node):
    """Return whether an expression is `….library` or `library_of(…)`."""
    return last_name(node) == "library" or (isinstance(node, ast.Call) and last_name(node.func) == "library_of")


def is_class_of_model(node):
    """Return whether an expression is the name or module of the class of a model, as in `type(model).__name__`."""
    if last_name(node) not in ("__name__", "__qualname__", "__module__"):
        return False
    owner = node.value
    return isinstance(owner, ast.Call) and last_name(owner.func) == "type" and last_name(owner.args[0]) == "model"


def probes_adapter(node, file):
    """Return whether `hasattr` or `getattr` asks an adapter, instead of one of its capabilities."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in ("hasattr", "getattr"):
        return False
    # A source of features in serving/ is any object of the user.
    adapters = {"adapter", "inner"} if place(file) == "serving/sources.py" else {"adapter", "inner", "source"}
    return last_name(node.args[0]) in adapters


def test_losses_costs_and_solvers_do_not_know_each_others_classes():
    classes = {folder: classes_in(folder) for folder in ("losses", "costs", "solvers")}
    foreign = {folder: set().union(*(classes[other] for other in classes if other != folder)) for folder in classes}
    foreign |= dict.fromkeys(("api.py", "selection"), set().union(*classes.values()))
    for file in MODULES:
        forbidden = foreign.get(place(file).partition("/")[0], set())
        for node in ast.walk(ast.parse(file.read_text())):
            assert classes_checked(node) & forbidden == set(), (place(file), ast.unparse(node))


def classes_in(folder):
    """Return the names of the classes defined in a folder."""
    trees = (ast.parse(file.read_text()) for file in (PACKAGE / folder).rglob("*.py"))
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def classes_checked(node):
    """Return the names in the second argument of a call of `isinstance` or `issubclass`."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in ("isinstance", "issubclass"):
        return set()
    return {last_name(part) for part in ast.walk(node.args[1])} - {None}


def last_name(node):
    """Return the name of a variable or attribute, None for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
