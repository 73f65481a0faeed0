"""Each target accepts valid files and survives a few hundred seeded mutations, without atheris."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz.__main__ import damaged_zip
from tests.fuzz.corpus import corpus
from tests.fuzz.targets import TARGETS
from tests.hardening.mutating.__main__ import mutate
from tests.hardening.mutating.damage import damage
from tests.hardening.mutating.models import MODELS

import secateur as sc
from secateur.errors import DamagedFileError, SecateurError
from secateur.files.models import load_model

NEEDS = {"skops": "skops", "onnx": "onnx", "spark_nodes": "pyarrow", "spark_metadata": "pyarrow"}
EACH = 60
LIBRARY = {name: name.partition(" ")[0] for name in MODELS}


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_files_are_refused_clearly_or_read(name):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    sources, rng = corpus(name), np.random.default_rng(7)
    assert sources
    for source in sources:
        TARGETS[name](source)
    for number in range(EACH):
        data = damage(sources[number % len(sources)], rng)
        try:
            TARGETS[name](data)
        except BaseException as error:
            error.add_note(f"mutation {number}")
            raise


@pytest.mark.parametrize("name", [name for name in MODELS if name != "Spark folder"])
def test_the_check_and_the_reader_agree_on_mutated_files(name, tmp_path):
    kind, rng = MODELS[name], np.random.default_rng(3)
    source = tmp_path / f"sound{kind.suffix}"
    kind.makes[0](source)
    assert sc.check_file(source).ok
    for number in range(EACH):
        target = tmp_path / f"{number}{kind.suffix}"
        with np.errstate(all="ignore"):
            mutate(kind, source, target, rng)
        status = sc.check_file(target).status
        try:
            load_model(target)
            refused = None
        except SecateurError as error:
            refused = error
        if status == "damaged":
            assert isinstance(refused, DamagedFileError), (number, status, refused)
        elif status == "ok":
            # XGBoost and CatBoost check more when they load a model.
            assert refused is None or "cannot " in str(refused).partition(LIBRARY[name])[2], (number, status, refused)
        target.unlink()


def test_a_part_of_a_zip_is_damaged_and_its_checksum_is_right():
    (source, *_), changed = corpus("secateur"), 0
    whole = parts_of(source)
    for seed in range(1, 40, 2):
        parts = parts_of(damaged_zip(source, 2**20, seed))
        assert parts.keys() == whole.keys()
        changed += sum(parts[name] != whole[name] for name in parts)
    assert 0 < changed <= 20
    assert all(damaged_zip(b"PK no zip", 5, seed) is not None for seed in range(8))


def parts_of(data):
    """Return the parts of a zip; reading one with a wrong checksum fails."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_fuzzing_without_atheris_says_what_to_install():
    code = "import sys; sys.modules['atheris'] = None; from tests.fuzz.__main__ import main; main()"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install atheris" in done.stderr
