"""Pickles are followed without being executed: what would run is named, what models need is known."""

import bz2
import codecs
import collections
import contextlib
import gzip
import importlib
import lzma
import os
import pickle
import pkgutil
import zlib

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import secateur as sc
from secateur.files.check.pickle_names import is_known
from secateur.files.check.pickle_values import Global
from secateur.files.models import load_model

RAN = "ran"


class Calls:
    """An object whose pickle calls a function when it is loaded."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def models():
    X, y = load_iris(return_X_y=True, as_frame=True)
    named = y.map(str)
    return {
        "forest": RandomForestClassifier(3, random_state=np.random.RandomState(0)).fit(X, named),
        "boosting": GradientBoostingClassifier(n_estimators=2).fit(X, y),
        "histograms": HistGradientBoostingRegressor(max_iter=2, loss="poisson").fit(X, y),
        "pipeline": make_pipeline(StandardScaler(), FunctionTransformer(np.arctan), RandomForestClassifier(2)).fit(
            X, y
        ),
        "search": GridSearchCV(RandomForestClassifier(2), {"max_depth": [1, 2]}, scoring="accuracy").fit(X, y),
    }


MODELS = models()


@pytest.mark.parametrize("name", MODELS)
def test_pickles_of_models_need_only_known_names(name, tmp_path):
    file = tmp_path / "model.pkl"
    for protocol in range(6):
        file.write_bytes(pickle.dumps(MODELS[name], protocol))
        report = sc.check_file(file)
        assert report.ok, (protocol, report)
        assert report.version is not None


@pytest.mark.parametrize("name", MODELS)
def test_files_of_joblib_are_followed_past_their_arrays(name, tmp_path):
    file = tmp_path / "model.joblib"
    for compress in (0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)):
        joblib.dump(MODELS[name], file, compress=compress)
        report = sc.check_file(file)
        assert report.ok, (compress, report)
        assert report.format.startswith("joblib, ")


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_pickled_boosters_need_only_known_names(name, tmp_path):
    package = pytest.importorskip(name)
    X, y = load_iris(return_X_y=True)
    kind = {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier", "catboost": "CatBoostClassifier"}[name]
    quiet = {"lightgbm": {"verbose": -1}, "catboost": {"verbose": 0, "allow_writing_files": False}}.get(name, {})
    model = getattr(package, kind)(n_estimators=2, **quiet).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    assert sc.check_file(tmp_path / "model.joblib").ok


EVIL = {
    "a call of os.system": (Calls(os.system, f"touch {RAN}"), "posix.system"),
    "eval": (Calls(eval, "1"), "builtins.eval"),
    "getattr": (Calls(getattr, "a", "upper"), "builtins.getattr"),
    "a call inside a model": (make_pipeline(Calls(os.system, f"touch {RAN}")), "posix.system"),
    "a function of numpy": (Calls(np.load, "x"), "numpy.load"),
    "a name that is only imported": (os.system, "posix.system"),
}


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_calls_are_named_and_not_made(name, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, wanted = EVIL[name]
    for file, dump in (("a.pkl", pickle.dumps), ("a.pickle", pickle.dumps)):
        (tmp_path / file).write_bytes(dump(made, protocol))
        report = sc.check_file(file)
        assert report.status == "runs code"
        assert wanted in report.unknown
        assert wanted in report.runs
        assert repr(wanted) in report.problem
    assert not (tmp_path / RAN).exists()


HAND_MADE = {
    "the public example of os.system": (b"cos\nsystem\n(Vecho\ntR.", "os.system"),
    "an instance by its class": (b"(Vecho\nios\nsystem\n.", "os.system"),
    "an object by its class": (b"(cos\nsystem\nVecho\no.", "os.system"),
    "a module of Python 2": (b"c__builtin__\neval\n(V1\ntR.", "builtins.eval"),
    "a name put together from the memo": (
        b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x30\x30h\x00h\x01\x93\x8c\x02id\x85R.",
        "os.system",
    ),
    "a name behind an attribute": (b"\x80\x04\x8c\x0csklearn.tree\x8c\x06Tree.x\x93)R.", "sklearn.tree.Tree.x"),
    "code before a truncated end": (b"cos\nsystem\n(Vecho\ntR", "os.system"),
    "code before bytes that are no instructions": (b"cos\nsystem\n(Vecho\ntR\xff\xff.", "os.system"),
    "a computed name": (b"\x80\x04c_codecs\nencode\n(Vbf\nVrot13\ntRVsystem\n\x93.", "imports a name that it computes"),
    "a result that is called": (
        b"ccollections\nOrderedDict\n)R)R.",
        "calls the result of another call",
    ),
    "an extension code": (b"\x82\x01.", "uses an extension code, which stands for any name"),
    "an object of the program": (b"P1\n.", "asks the program that loads it for an object"),
    "a changed class": (b"csklearn.tree\nTree\n}b.", "changes a module, type or function"),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_hand_made_pickles_do_not_hide_what_they_do(name, tmp_path):
    data, wanted = HAND_MADE[name]
    (tmp_path / "a.pkl").write_bytes(data)
    report = sc.check_file(tmp_path / "a.pkl")
    assert report.status == "runs code"
    assert wanted in report.unknown


PACKERS = {"zlib": zlib.compress, "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("name", PACKERS)
def test_calls_inside_compressed_files_are_named(name, tmp_path):
    (tmp_path / "a.joblib").write_bytes(PACKERS[name](HAND_MADE["the public example of os.system"][0]))
    report = sc.check_file(tmp_path / "a.joblib")
    assert report.unknown == ("os.system",)
    assert report.format.endswith(f"compressed by {name}")


@pytest.mark.parametrize("suffix", [".pkl.gz", ".joblib.z", ".pickle.bz2", ".pkl.xz", ".joblib.lzma"])
def test_a_second_suffix_of_joblib_is_known(suffix, tmp_path):
    joblib.dump(MODELS["forest"], tmp_path / f"a.b{suffix}")
    assert sc.check_file(tmp_path / f"a.b{suffix}").ok
    (tmp_path / f"a.csv{suffix[-3:]}").write_bytes(b"x")
    assert sc.check_file(tmp_path / f"a.csv{suffix[-3:]}").status == "unsupported"


def test_calls_among_the_bytes_of_an_array_are_named(tmp_path):
    """joblib skips these bytes; pickle would execute them."""
    code = b"cos\nsystem\n(Vecho\ntR."
    joblib.dump(np.frombuffer(code, np.uint8), tmp_path / "a.joblib")
    data = (tmp_path / "a.joblib").read_bytes()
    at = data.index(code)
    padding = data[:at].rindex(bytes([len(data[:at]) - len(data[:at].rstrip(b"\xff"))]))
    assert sc.check_file(tmp_path / "a.joblib").ok
    (tmp_path / "a.pkl").write_bytes(data[:padding] + code + data[padding:])
    assert "os.system" in sc.check_file(tmp_path / "a.pkl").unknown


def test_calls_in_arrays_of_objects_are_named(tmp_path):
    joblib.dump(np.array([Calls(os.system, "id"), 1], object), tmp_path / "a.joblib")
    assert "posix.system" in sc.check_file(tmp_path / "a.joblib").unknown


def test_calls_after_an_array_are_named(tmp_path):
    joblib.dump([np.arange(1000.0), Calls(os.system, "id")], tmp_path / "a.joblib")
    assert "posix.system" in sc.check_file(tmp_path / "a.joblib").unknown


@pytest.mark.parametrize("cut", [1, 10, 100, 1000])
def test_truncated_pickles_are_damaged(cut, tmp_path):
    data = pickle.dumps(MODELS["forest"])
    (tmp_path / "a.pkl").write_bytes(data[:-cut])
    assert sc.check_file(tmp_path / "a.pkl").status == "damaged"
    (tmp_path / "a.joblib").write_bytes(zlib.compress(data)[:-cut])
    report = sc.check_file(tmp_path / "a.joblib")
    assert report.status == "damaged"
    assert "Copy it again" in report.problem


def test_an_array_longer_than_the_file_is_damaged(tmp_path):
    joblib.dump(np.arange(1000.0), tmp_path / "a.joblib")
    data = (tmp_path / "a.joblib").read_bytes()
    (tmp_path / "a.joblib").write_bytes(data[:-4000])
    report = sc.check_file(tmp_path / "a.joblib")
    assert report.status == "damaged"
    assert "more bytes" in report.problem


def test_bombs_are_not_unpacked(tmp_path):
    (tmp_path / "a.joblib").write_bytes(zlib.compress(bytes(2**28), 9))
    report = sc.check_file(tmp_path / "a.joblib")
    assert report.status == "damaged"
    assert "unpacks to more than" in report.problem


def test_nested_tuples_are_followed_without_recursion(tmp_path):
    (tmp_path / "a.pkl").write_bytes(b"(" * 10**5 + b"t" * 10**5 + b".")
    assert sc.check_file(tmp_path / "a.pkl").ok


def test_classes_of_other_packages_are_not_known_by_a_module_of_models():
    for name in ("lightgbm.basic NamedTemporaryFile", "xgboost.sklearn ThreadPoolExecutor", "catboost.core Path"):
        assert not is_known(Global(*name.split()))
    for module in (
        "sklearn.ensemble.tests.test_forest",
        "sklearn.datasets._base",
        "sklearn.utils._testing",
        "scipy.stats",
    ):
        assert not is_known(Global(module, "TempMemmap"))
    assert not is_known(Global("sklearn.tree", "_classes.Tree"))


def test_modules_of_models_import_no_class_that_does_something_when_it_is_made():
    """Classes are known by spelling, so those that a module imports are known, too: only harmless ones."""
    homes = set()
    for info in pkgutil.walk_packages(sklearn.__path__, "sklearn."):
        if is_known(Global(info.name, "A")) and "externals" not in info.name:
            with contextlib.suppress(ImportError):
                found = vars(importlib.import_module(info.name)).items()
                homes |= {
                    v.__module__ for name, v in found if isinstance(v, type) and is_known(Global(info.name, name))
                }
    foreign = {home.partition(".")[0] for home in homes} - {"sklearn", "numpy", "builtins"}
    assert foreign <= {"_io", "abc", "collections", "numbers", "scipy", "typing"}


def test_bytes_after_the_end_are_a_warning(tmp_path):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(collections.OrderedDict()) + b"more")
    assert "4 bytes follow the end" in sc.check_file(tmp_path / "a.pkl").warnings[1]


def test_lz4_is_unsupported(tmp_path):
    (tmp_path / "a.joblib").write_bytes(b"\x04\x22\x4d\x18xxxx")
    assert sc.check_file(tmp_path / "a.joblib").status == "unsupported"


def test_bytes_of_protocol_2_are_known(tmp_path):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(b"\x00\xff", 2))
    assert b"_codecs" in pickle.dumps(b"\x00\xff", 2)
    assert codecs.encode("\xff", "latin1") == b"\xff"
    assert sc.check_file(tmp_path / "a.pkl").ok


SKOPS = pytest.importorskip("skops.io", reason="needs skops")


def test_types_of_a_skops_file_are_listed(tmp_path):
    SKOPS.dump(MODELS["search"], tmp_path / "a.skops")
    report = sc.check_file(tmp_path / "a.skops")
    assert report.ok
    assert "sklearn.tree._tree.Tree" in report.names
    assert report.nodes == sc.as_forest(MODELS["search"]).n_nodes


def test_untrusted_types_of_a_skops_file_are_named_and_not_built(tmp_path):
    SKOPS.dump(make_pipeline(FunctionTransformer(os.getcwd), MODELS["forest"]), tmp_path / "a.skops")
    report = sc.check_file(tmp_path / "a.skops")
    assert report.status == "runs code"
    assert report.unknown == ("posix.getcwd",)
    with pytest.raises(ValueError, match="not known to be harmless"):
        load_model(tmp_path / "a.skops")


def test_without_skops_types_are_listed_from_the_schema(tmp_path, monkeypatch):
    SKOPS.dump(make_pipeline(FunctionTransformer(os.getcwd), MODELS["forest"]), tmp_path / "evil.skops")
    SKOPS.dump(MODELS["forest"], tmp_path / "good.skops")

    def missing():
        raise ImportError("A .skops file needs skops. Run: pip install 'secateur[skops]'")

    monkeypatch.setattr("secateur.files.skops.import_skops", missing)
    evil, good = (sc.check_file(tmp_path / f"{name}.skops") for name in ("evil", "good"))
    assert (evil.status, evil.unknown) == ("runs code", ("posix.getcwd",))
    assert good.status == "unsupported"
    assert "sklearn.tree._tree.Tree" in good.names
