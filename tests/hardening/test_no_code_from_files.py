"""Files cannot run code: the source has no eval, and loads pickles in one place, which requires trust."""

import ast
from pathlib import Path

import secateur

SOURCE = Path(secateur.__file__).parent
RUNS_CODE = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {"load", "loads", "Unpickler", "read_pickle"}
PICKLING = {"pickle", "joblib", "cloudpickle", "marshal", "shelve", "dill"}
TRUSTED = {
    "files/formats.py": "what load_model opens with trust",
    "spark/partition_results.py": "what executors of the same job sent back",
    "spark/tasks.py": "what the driver of the same job sent out",
}


def uses(file):
    """Yield the functions that a file calls, or passes on, that could run code."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Name) and node.id in RUNS_CODE:
            yield node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in PICKLING and node.attr in UNPICKLES:
                yield f"{node.value.id}.{node.attr}"
            if node.attr == "load" and node.value.id == "np":
                yield "np.load"
        if isinstance(node, ast.ImportFrom) and node.module in PICKLING:
            yield f"from {node.module}"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant)
            assert node.value.value is False


def test_only_trusted_places_unpickle_and_nothing_is_evaluated():
    found = {file.relative_to(SOURCE).as_posix(): set(uses(file)) for file in sorted(SOURCE.rglob("*.py"))}
    found = {name: what for name, what in found.items() if what}
    for name in ("files/archive.py", "files/skops_writer.py"):
        assert found.pop(name) == {"np.load"}  # with allow_pickle=False, seen above
    assert set(found) == set(TRUSTED)
    assert all(what <= {"pickle.load", "pickle.loads", "joblib.load"} for what in found.values())


def test_the_look_finds_what_it_looks_for(tmp_path):
    (tmp_path / "a.py").write_text("import pickle\neval('1')\npickle.loads(b'')\nf = pickle.load\n")
    assert sorted(uses(tmp_path / "a.py")) == ["eval", "pickle.load", "pickle.loads"]
