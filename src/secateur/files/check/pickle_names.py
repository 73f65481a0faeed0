"""Decide which names of a pickle a tree model needs.

A name is known if it is listed here, or if it is a class in a module of models, by the spelling of class names.
Whole packages are not: numpy, scipy and scikit-learn have functions that run code which they are given.
"""

import re

import numpy as np

from secateur.files.check.pickle_values import WRAPPER, Global
from secateur.files.skops import HARMLESS

_CLASSES = re.compile(
    r"sklearn\.(_loss|base|calibration|compose|decomposition|discriminant_analysis|dummy|ensemble|feature_extraction"
    r"|feature_selection|frozen|impute|isotonic|kernel_approximation|linear_model|model_selection|multiclass"
    r"|multioutput|naive_bayes|neighbors|pipeline|preprocessing|random_projection|svm|tree)"
    r"(\.(?!tests\.)\w+)*\._*[A-Z]\w*"
    r"|sklearn\.(metrics\._scorer|utils\._metadata_requests|utils\._bunch)\._*[A-Z]\w*"
    r"|xgboost\.(core|sklearn)\.(Booster|XGB[A-Z]\w*)"
    r"|lightgbm\.(basic|sklearn)\.(Booster|LGBM[A-Z]\w*)"
    r"|catboost\.core\.CatBoost\w*"
    r"|scipy\.sparse\._(bsr|coo|csc|csr|dia|dok|lil)\.(bsr|coo|csc|csr|dia|dok|lil)_(array|matrix)"
    r"|numpy\.random\.(_mt19937\.MT19937|_pcg64\.PCG64(DXSM)?|_philox\.Philox|_sfc64\.SFC64|_generator\.Generator"
    r"|bit_generator\.SeedSequence|mtrand\.RandomState)",
    re.ASCII,
)
"""Classes that models consist of, by module and spelling: the modules of scikit-learn import no harmful class."""
_UNPICKLERS = re.compile(r"sklearn\._loss\._loss\.__pyx_unpickle_\w+|numpy\.random\.bit_generator\.__pyx_unpickle_\w+")
# Without `str`, which would make names out of other values.
_BUILTINS = (
    *("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "range"),
    *("set", "slice", "tuple"),
)
_SCALARS = (
    *("bool", "bool_", "datetime64", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "intp"),
    *("longdouble", "object_", "str_", "timedelta64", "uint8", "uint16", "uint32", "uint64"),
)
_NAMES = frozenset(
    {
        WRAPPER,
        "_codecs.encode",
        "collections.OrderedDict",
        "collections.defaultdict",
        "copyreg._reconstructor",
        "datetime.date",
        "datetime.datetime",
        "numpy.dtype",
        "numpy.ma.MaskedArray",
        "numpy.ma.core._mareconstruct",
        "numpy.matrix",
        "numpy.ndarray",
        *(f"numpy.{core}.multiarray.{name}" for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
        *(f"numpy.{core}.numeric._frombuffer" for core in ("core", "_core")),
        *(f"numpy.random._pickle.__{name}_ctor" for name in ("bit_generator", "generator", "randomstate")),
        *(f"numpy.{name}" for name in _SCALARS),
        *(f"builtins.{name}" for name in _BUILTINS),
    }
)


def is_known(found: Global) -> bool:
    """Return whether a tree model needs this name, or a preparation of its rows does."""
    full = str(found)
    if "." in found.name:
        return False
    if full in _NAMES or full in HARMLESS or _UNPICKLERS.fullmatch(full):
        return True
    if found.module == "numpy" and isinstance(np.__dict__.get(found.name), np.ufunc):
        return True
    return bool(_CLASSES.fullmatch(full))


def is_plausible(found: Global) -> bool:
    """Return whether a name can be imported at all, rather than being read from the bytes of an array."""
    return all(part.isidentifier() for part in (*found.module.split("."), *found.name.split(".")))
