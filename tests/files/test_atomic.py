"""Files are written atomically: killed writers, concurrent writers, and permissions."""

import errno
import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from secateur.files import atomic, atomic_folder
from secateur.files.atomic import replacing
from secateur.files.atomic_folder import replacing_folder

WRITE_AS_NOBODY = """
import os
from secateur.files.atomic import replacing
if os.getuid() == 0:
    os.setuid(65534)
with replacing("m", force=False) as stream:
    stream.write(b"new")
"""
LEFT = ".model.skops.0123456789abcdef.part"


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


def aged(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def write(file, content=b"new", *, force=False):
    with replacing(file, force=force) as stream:
        stream.write(content)


def write_folder(folder, content="new", *, force=False):
    with replacing_folder(folder, force=force) as new:
        (new / "a").write_text(content)


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


@pytest.fixture(params=["one step", "steps"])
def renaming(request, monkeypatch):
    """Rename as Linux and macOS can, and as must be done without hard links and exchanged names."""

    def refuse(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    if request.param == "steps":
        monkeypatch.setattr(atomic.os, "link", refuse)
        monkeypatch.setattr(atomic_folder, "_SWAP_FLAGS", {})


def test_new_files_have_the_permissions_of_new_files(tmp_path, umask):
    write(tmp_path / "m.skops")
    write_folder(tmp_path / "folder")
    assert mode(tmp_path / "m.skops") == 0o666 & ~umask
    assert mode(tmp_path / "folder") == 0o777 & ~umask


def test_what_was_private_stays_private_also_while_it_is_written(tmp_path):
    write(tmp_path / "m.skops")
    (tmp_path / "m.skops").chmod(0o600)
    with replacing(tmp_path / "m.skops", force=True) as stream:
        stream.write(b"secret")
        stream.flush()
        assert {mode(file) for file in tmp_path.iterdir()} == {0o600}
    assert mode(tmp_path / "m.skops") == 0o600
    write_folder(tmp_path / "folder")
    (tmp_path / "folder").chmod(0o700)
    write_folder(tmp_path / "folder", force=True)
    assert mode(tmp_path / "folder") == 0o700


def test_threads_that_write_at_once_leave_the_umask_alone(tmp_path, umask):
    def many(number):
        for k in range(40):
            write(tmp_path / f"{number}-{k}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(many, range(8)))
    assert os.umask(umask) == umask
    assert {mode(file) for file in tmp_path.iterdir()} == {0o666 & ~umask}


@pytest.mark.usefixtures("renaming")
@pytest.mark.parametrize("form", [write, write_folder])
def test_a_name_taken_while_writing_is_not_overwritten_unasked(form, tmp_path):
    manager = replacing if form is write else replacing_folder
    taken = pytest.raises(FileExistsError, match=r"exists and would be overwritten.*force=True")
    with taken, manager(tmp_path / "m", force=False):
        form(tmp_path / "m")
    assert names(tmp_path) == ["m"]
    kept = tmp_path / "m" if form is write else tmp_path / "m" / "a"
    assert kept.read_text() == "new"


@pytest.mark.usefixtures("renaming")
def test_a_folder_takes_the_place_of_another(tmp_path):
    write_folder(tmp_path / "m", "old")
    write_folder(tmp_path / "m", "new", force=True)
    assert (tmp_path / "m" / "a").read_text() == "new"
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize("folder", [False, True])
def test_files_of_a_killed_writer_are_removed_after_an_hour(folder, tmp_path):
    left = tmp_path / LEFT
    if folder:
        (left / "new").mkdir(parents=True)
    else:
        left.touch()
    for seconds, found in ((3000, [LEFT, "model.skops"]), (4000, ["model.skops"])):
        aged(left, seconds)
        write(tmp_path / "model.skops", force=True)
        assert names(tmp_path) == found


def test_files_of_a_running_writer_are_not_removed(tmp_path):
    for manager in (replacing, replacing_folder):
        with manager(tmp_path / "m", force=True):
            (temporary,) = tmp_path.glob(".m.*")
            aged(temporary, 3000)
            (write if manager is replacing else write_folder)(tmp_path / "m")
            assert temporary.exists()
        assert names(tmp_path) == ["m"]
        (tmp_path / "m").unlink() if manager is replacing else None


def test_without_an_exchange_a_folder_that_cannot_be_replaced_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_folder, "_SWAP_FLAGS", {})
    write_folder(tmp_path / "m", "old")
    rename = type(tmp_path).rename

    def fail_for_the_new(self, target):
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(type(tmp_path), "rename", fail_for_the_new)
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "m", "new", force=True)
    assert (tmp_path / "m" / "a").read_text() == "old"
    assert names(tmp_path) == ["m"]


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
def test_a_folder_that_may_be_written_to_but_not_listed(tmp_path):
    """As nobody, since root may do everything."""
    for folder in tmp_path.parents[:2]:
        folder.chmod(folder.stat().st_mode | 0o111)
    tmp_path.chmod(0o333)
    done = subprocess.run([sys.executable, "-c", WRITE_AS_NOBODY], cwd=tmp_path, capture_output=True, text=True)
    tmp_path.chmod(0o777)
    assert done.stderr == ""
    assert (tmp_path / "m").read_bytes() == b"new"


def test_a_permission_error_names_the_target_file(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted", "hidden")

    monkeypatch.setattr(atomic, "_rename_to", refuse)
    with pytest.raises(
        PermissionError,
        match=r"m\.skops was not written: operation not permitted.*Existing files are unchanged.*Change",
    ):
        write(tmp_path / "m.skops")
    assert names(tmp_path) == []
