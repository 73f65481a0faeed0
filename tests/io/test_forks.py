"""Models of libraries that use OpenMP are pruned in a fork of a process that has used it."""

import os
import subprocess
import sys

import pytest

CODE = """
import os, signal, sys
import numpy as np
import {library}
import secateur as sc
X = np.random.default_rng(0).normal(size=(2000, 6))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = {library}.{kind}(n_estimators=20, n_jobs=2).fit(X, y)
model.predict(X)
print(sc.as_forest(model).n_nodes)
sys.stdout.flush()
if os.fork() == 0:
    small = sc.prune(model, X, y, solver="weakest_link", max_nodes=100)
    print(sc.as_forest(small).n_nodes <= 100)
    small.predict(X)
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
@pytest.mark.parametrize(("library", "kind"), [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")])
def test_a_fork_does_not_lock_up(library, kind):
    pytest.importorskip(library)
    words = [sys.executable, "-c", CODE.format(library=library, kind=kind)]
    threads = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(words, capture_output=True, text=True, env=threads, timeout=120)
    assert done.stdout.endswith("True\n"), done.stderr
