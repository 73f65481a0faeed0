"""Compiled kernels on disk: a cache that is old, damaged, full or forbidden costs time, never an answer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import secateur

CALLER = """
from secateur.kernels._jit import kernel
from secateur.kernels.callee import add

@kernel
def total(values):
    result = values[0] * 0
    for value in values:
        result = add(result, value)
    return result
"""
CALLEE = """
from secateur.kernels._jit import kernel

@kernel
def add(a, b):
    return a + {times} * b
"""
PROGRAM = """
import sys
import numpy as np
import secateur.kernels.caller as caller
{before}
for kind in sys.argv[1:]:
    print(caller.total(np.array([1, 2, 3], kind)))
stats = caller.total.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
NO_CODE_WRITTEN = "caller.total._cache._cache_file._save_data = lambda *_: sys.exit(0)"
INTERRUPTED = """
import signal
from llvmlite.binding import ExecutionEngine
find = ExecutionEngine._find_module_ptr  # the first thing LLVM calls Python for when it loads code

def interrupted(*args):
    ExecutionEngine._find_module_ptr = find
    signal.raise_signal(signal.SIGINT)
    return find(*args)

ExecutionEngine._find_module_ptr = interrupted
try:
    caller.total(np.array([1, 2, 3]))
except KeyboardInterrupt:
    print("interrupted")
"""
SMALL_FILES = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the package whose only kernels are two of our own."""
    root = tmp_path / "secateur"
    (root / "kernels").mkdir(parents=True)
    (root / "__init__.py").touch()
    (root / "kernels" / "__init__.py").touch()
    for name in ("_jit.py", "_cache.py", "_signals.py"):
        shutil.copy(Path(secateur.__file__).parent / "kernels" / name, root / "kernels")
    (root / "kernels" / "caller.py").write_text(CALLER)
    change(tmp_path, 1)
    return tmp_path


def change(copy, times):
    (copy / "secateur" / "kernels" / "callee.py").write_text(CALLEE.format(times=times))


def run(copy, *kinds, before="", **environment):
    """Return the answers of a new process, and how many kernels it found and did not find on disk."""
    command = [sys.executable, "-c", PROGRAM.format(before=before), *kinds]
    usual = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}  # it would be there instead
    variables = {**usual, "PYTHONPATH": str(copy), "XDG_CACHE_HOME": str(copy / "cache"), **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1], done.stderr


def files(copy, suffix):
    return sorted((copy / "cache").glob(f"secateur/kernels/numba-*/caller.total*{suffix}"))


def test_a_kernel_is_compiled_again_when_one_it_calls_has_changed(copy):
    assert run(copy, "i8")[0] == ["6", "0 1"]
    assert run(copy, "i8")[0] == ["6", "1 0"]
    change(copy, 10)
    assert run(copy, "i8", before=NO_CODE_WRITTEN)[0] == []  # killed when only the index was written
    assert run(copy, "i8")[0] == ["60", "0 1"]
    assert run(copy, "i8")[0] == ["60", "1 0"]


def test_damaged_files_and_code_for_other_types_are_not_used(copy):
    run(copy, "i8", "f8")
    code, other = files(copy, ".nbc")
    shutil.copy(code, other)
    assert run(copy, "i8", "f8")[0] == ["6", "6.0", "1 1"]
    code.write_bytes(code.read_bytes()[:100])
    assert run(copy, "i8", "f8")[0] == ["6", "6.0", "0 2"]
    (index,) = files(copy, ".nbi")
    index.write_bytes(index.read_bytes()[:50])
    assert run(copy, "i8", "f8")[0] == ["6", "6.0", "0 2"]
    assert run(copy, "i8", "f8")[0] == ["6", "6.0", "2 0"]


def test_ctrl_c_while_a_kernel_is_loaded_is_ctrl_c(copy):
    run(copy, "i8")
    assert run(copy, "i8", before=INTERRUPTED)[0] == ["interrupted", "6", "1 0"]


@pytest.mark.skipif(os.name != "posix", reason="the limit on the size of files is POSIX")
def test_a_full_disk_does_not_stop_a_kernel(copy):
    assert run(copy, "i8", before=SMALL_FILES)[0] == ["6", "0 1"]
    assert files(copy, ".nb*") == files(copy, ".nbi")  # no half-written code


def test_without_any_folder_to_write_to_kernels_run_and_the_log_says_what_to_set(copy):
    beside = copy / "secateur" / "kernels" / "__pycache__"
    beside.write_text("not a folder, so that root cannot write to it, either")
    nowhere = {"HOME": str(copy / "file"), "XDG_CACHE_HOME": str(copy / "secateur" / "__init__.py")}
    output, log = run(copy, "i8", **nowhere)
    assert output == ["6", "0 1"]
    assert log.count("Set NUMBA_CACHE_DIR") == 1
    beside.unlink()
    assert run(copy, "i8", **nowhere) == (["6", "0 1"], "")  # numba's own place is the second choice
    assert run(copy, "i8", **nowhere) == (["6", "1 0"], "")


def test_of_processes_that_need_a_kernel_at_once_one_compiles_it(copy):
    command = [sys.executable, "-c", PROGRAM.format(before=""), "i8"]
    variables = {**os.environ, "PYTHONPATH": str(copy), "XDG_CACHE_HOME": str(copy / "cache")}
    variables.pop("NUMBA_CACHE_DIR", None)
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) for _ in range(4)]
    outputs = [process.communicate(timeout=120)[0].split("\n")[:-1] for process in processes]
    assert [total for total, _ in outputs] == ["6"] * 4
    assert sorted(counts for _, counts in outputs) == ["0 1", "1 0", "1 0", "1 0"]


def test_another_checkout_finds_the_kernels_compiled_in_the_first(copy, tmp_path_factory):
    run(copy, "i8")
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(copy / "secateur", other / "secateur")
    shared = {"XDG_CACHE_HOME": str(copy / "cache")}
    assert run(other, "i8", **shared)[0] == ["6", "1 0"]
    change(other, 10)
    assert run(other, "i8", **shared)[0] == ["60", "0 1"]
    assert run(copy, "i8")[0] == ["6", "1 0"]  # both versions are kept
