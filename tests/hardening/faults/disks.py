"""Disks that are full or read-only: the error message, and the files afterwards."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hardening.faults.outputs import LIBRARIES, Output, digest, digest_of_model, outputs, trained
from tests.hardening.faults.tables import command_files

_PAGE = 4096
_LARGE = 2**24
_PROGRAM = [sys.executable, "-c", "from secateur.cli import main; main()"]


def fill_disk(n_steps: int) -> list[dict[str, Any]]:
    """Write every kind of output to a small disk with increasing free space, until it fits."""
    folder = _mounted("size=16m")
    return [_fill(name, output, folder, n_steps, _Disk(folder)) for name, output in outputs().items()]


def limit_files(n_steps: int) -> list[dict[str, Any]]:
    """Write every kind of output under an increasing limit on the size of files, until it fits."""
    folder = Path(tempfile.mkdtemp())
    try:
        return [_fill(name, output, folder, n_steps, _Limit()) for name, output in outputs().items()]
    finally:
        shutil.rmtree(folder)


def command_on_full_disk() -> list[str]:
    """Run a command whose result does not fit on the disk, and return what is wrong."""
    source, target = Path(tempfile.mkdtemp()), _mounted("size=8k")
    words = _command(source, target / "small.skops")
    done = subprocess.run(words, capture_output=True, text=True)
    wrong = [] if done.returncode == 1 and "was not written" in done.stderr else [f"the command printed {done.stderr}"]
    return wrong + [f"the command left {name}" for name in os.listdir(target)]


def write_where_nothing_may_be(kind: str) -> list[dict[str, Any]]:
    """Write every kind of output to a read-only folder that contains an old file."""
    rows = []
    folder = Path(tempfile.mkdtemp())
    for output in outputs().values():
        output.old(folder / output.file)
    allow, forbid = _forbidding(folder, kind)
    forbid()
    for name, output in outputs().items():
        before = _content(folder / output.file)
        bad = _refused(lambda output=output: output.new(folder / output.file), PermissionError, "is not writable")
        if _content(folder / output.file) != before or len(os.listdir(folder)) != len(
            {o.file for o in outputs().values()}
        ):
            bad.append("the folder has changed")
        rows.append({"what": name, "refused": 1, "bad": [f"{name}: {text}" for text in bad]})
    allow()
    return rows


def prune_where_nothing_may_be() -> dict[str, str]:
    """Return digests of pruned models, computed where all folders are read-only."""
    import matplotlib  # noqa: F401  # LightGBM 4.5 imports it, and it wants a folder then
    import scipy.stats  # noqa: F401  # 1.12 makes a temporary file when it is imported

    for mounted in _mounts():
        subprocess.run(["mount", "-o", "remount,bind,ro", mounted], capture_output=True)
    writable = [str(place) for place in _places() if os.access(place, os.W_OK)]
    if writable:
        raise RuntimeError(f"{writable} can be written to, so nothing is shown")
    return pruned_models()


def pruned_models() -> dict[str, str]:
    """Return a digest of a pruned model of every library."""
    import secateur as sc

    found = {}
    for library in LIBRARIES:
        model, X, y = trained(library)
        limit = sc.as_forest(model).n_nodes // 3
        found[library] = digest_of_model(sc.prune(model, X, y, solver="weakest_link", max_nodes=limit))
    return found


class _Disk:
    """A disk with a given number of free bytes."""

    def __init__(self, folder: Path) -> None:
        self.ballast = folder / "ballast"

    def attempt(self, free: int, write: Callable[[], None]) -> str:
        """Return the error of an attempt to write; empty if it succeeds."""
        room = os.statvfs(self.ballast.parent)
        with self.ballast.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, max(room.f_bavail * room.f_frsize - free, 1))
        try:
            return _error_text(write)
        finally:
            self.ballast.unlink()


class _Limit:
    """A limit on the size of files, set in a fork."""

    def attempt(self, free: int, write: Callable[[], None]) -> str:
        """Return the error of an attempt to write; empty if it succeeds."""
        reads, writes = os.pipe()
        if os.fork() == 0:
            resource.setrlimit(resource.RLIMIT_FSIZE, (free, free))
            os.write(writes, _error_text(write).encode())
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as stream:
            message = stream.read()
        os.wait()
        return message


def _fill(name: str, output: Output, folder: Path, n_steps: int, disk: _Disk | _Limit) -> dict[str, Any]:
    target = folder / output.file
    output.new(target)
    new, size = output.read(target), _size(target)
    output.old(target)
    found: Counter[str] = Counter()
    bad: list[str] = []
    for free in [*(step * size // n_steps for step in range(n_steps)), _LARGE // 2]:
        before = _content(target)
        message = disk.attempt(free // _PAGE * _PAGE, lambda: output.new(target))
        found["refused" if message else "written"] += 1
        if message and not re.search("(was not written: |Cannot write a temporary file).*Free disk space", message):
            bad.append(f"with {free} bytes left the error was: {message}")
        if message and _content(target) != before:
            bad.append(f"with {free} bytes left the old file has changed")
        if not message and _read(output, target) != new:
            bad.append(f"with {free} bytes left it was not written whole, and no error was raised")
        if os.listdir(folder) != [target.name]:
            bad.append(f"with {free} bytes left it left {os.listdir(folder)}")
    if not found["written"] or not found["refused"]:
        bad.append(f"it was refused {found['refused']} times and written {found['written']} times")
    _remove(target)
    return {"what": name, "refused": 0, "written": 0, **found, "bad": [f"{name}: {text}" for text in bad]}


def _read(output: Output, target: Path) -> str:
    try:
        return output.read(target)
    except ValueError as error:
        return str(error)


def _error_text(write: Callable[[], None]) -> str:
    try:
        write()
    except OSError as error:
        return str(error)
    except BaseException as error:
        return f"{type(error).__name__} {error}"
    return ""


def _refused(write: Callable[[], None], kind: type[Exception], words: str) -> list[str]:
    try:
        write()
    except kind as error:
        return [] if words in str(error) else [f"the error was: {error}"]
    except Exception as error:
        return [f"it raised {error!r}"]
    return ["no error was raised"]


def _content(target: Path) -> str:
    """Return a digest of the bytes of a file, or of the files of a folder and their names."""
    files = [target] if target.is_file() else sorted(path for path in target.rglob("*") if path.is_file())
    return digest(*(part for file in files for part in (str(file), file.read_bytes())))


def _size(target: Path) -> int:
    files = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
    return max(file.stat().st_size for file in files)


def _remove(target: Path) -> None:
    shutil.rmtree(target) if target.is_dir() else target.unlink()


def _mounted(options: str) -> Path:
    folder = tempfile.mkdtemp()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    return Path(folder)


def _forbidding(folder: Path, kind: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return functions that allow and forbid writing to a folder, by permissions or by a mount."""
    if kind == "permissions":
        return (lambda: folder.chmod(0o700)), (lambda: folder.chmod(0o500))

    def mount(how: str) -> Callable[[], None]:
        def remount() -> None:
            subprocess.run(["mount", "--bind", folder, folder], check=True)
            subprocess.run(["mount", "-o", f"remount,bind,{how}", folder], check=True)

        return remount

    return mount("rw"), mount("ro")


def _mounts() -> list[str]:
    """Return the mount points, innermost first, without those of virtual file systems."""
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return sorted((line[1] for line in lines if not line[1].startswith(("/proc", "/sys"))), key=len, reverse=True)


def _places() -> list[Path]:
    """Return the folders a program could write to: its source, home, working and temporary folders."""
    import secateur.kernels

    return [Path(*secateur.kernels.__path__), Path.home(), Path.cwd(), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]


def _command(source: Path, out: Path) -> list[str]:
    """Write the files of a command that prunes, and return the command."""
    return [*_PROGRAM, "prune", *command_files(source), "--out", str(out), "--solver", "weakest_link"]
