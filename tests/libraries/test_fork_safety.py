"""Test that models of libraries with OpenMP can be pruned in a fork of a process that has used OpenMP."""

import os
import subprocess
import sys

import pytest

CODE = """
import os, signal, sys
import numpy as np
import {library}
import secateur as sc
from secateur.files.models import load_model, save_model
X = np.random.default_rng(0).normal(size=(2000, 6))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = {library}.{kind}(n_estimators=20, n_jobs=2).fit(X, y)
model.predict(X)
print(sc.as_forest(model).n_nodes)
sys.stdout.flush()
path = sc.prune_path(model, X, y, solver="weakest_link")
sys.stdout.flush()
for file in ("m.pkl", "m{suffix}"):
    if os.fork() == 0:  # what comes first in a fork must not wait
        save_model(model, os.path.join(sys.argv[1], file))
        os._exit(0)
    os.wait()
if os.fork() == 0:
    path[1].to_model()
    load_model(os.path.join(sys.argv[1], "m{suffix}"))
    os._exit(0)
os.wait()
if os.fork() == 0:
    small = sc.prune(model, X, y, solver="weakest_link", max_nodes=100)
    print(sc.as_forest(small).n_nodes <= 100)
    small.predict(X)
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
@pytest.mark.parametrize(
    ("library", "kind", "suffix"), [("xgboost", "XGBClassifier", ".ubj"), ("lightgbm", "LGBMClassifier", ".txt")]
)
def test_a_fork_does_not_lock_up(library, kind, suffix, tmp_path):
    pytest.importorskip(library)
    words = [sys.executable, "-c", CODE.format(library=library, kind=kind, suffix=suffix), str(tmp_path)]
    threads = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(words, capture_output=True, text=True, env=threads, timeout=120)
    assert len(list(tmp_path.iterdir())) == 2
    assert done.stdout.endswith("True\n"), done.stderr
