"""Module paths of release 0.1: they keep importing, say where the module is now, and are written
down."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ciphervec
from ciphervec import EncryptedNearestNeighbors, _moved

ROOT = Path(__file__).parents[3]
PATHS = {f"ciphervec.{old}": f"ciphervec.{new}" for old, new in _moved.MOVED.items()}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test imports by an old path is not imported for the next."""
    yield
    for old in [name for name in sys.modules if _moved.new_path(name)]:
        del sys.modules[old]
        name = old.removeprefix("ciphervec.")
        if name not in ciphervec.__all__:
            vars(ciphervec).pop(name, None)


@pytest.mark.parametrize("old", PATHS)
def test_an_old_path_imports_the_same_module_and_says_where_it_is(old: str) -> None:
    new = importlib.import_module(PATHS[old])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        again = importlib.import_module(old)
    assert again is new and new.__name__ == PATHS[old]
    assert new.__spec__ is not None and new.__spec__.name == PATHS[old]
    assert [one.category for one in warned] == [DeprecationWarning]
    assert str(warned[0].message).startswith(f"{old} has moved to {PATHS[old]}; ")


@pytest.mark.parametrize("statement", ["import ciphervec.spec", "from ciphervec.spec import Description"])
def test_the_warning_points_at_the_import(statement: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", f"\n\n{statement}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and 'File "<string>", line 3' in done.stderr
    assert "DeprecationWarning: ciphervec.spec has moved to ciphervec.collections.spec" in done.stderr


def test_an_old_path_as_an_attribute() -> None:
    with pytest.warns(DeprecationWarning, match=r"ciphervec\.spec has moved") as warned:
        assert ciphervec.spec is importlib.import_module("ciphervec.collections.spec")
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match="no attribute 'spam'"):
        _ = ciphervec.spam


def test_exported_names_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        for name in ciphervec.__all__:
            getattr(ciphervec, name)


def test_old_paths_are_free_and_new_ones_taken() -> None:
    package = Path(ciphervec.__file__).parent
    for old, new in _moved.MOVED.items():
        taken = package.joinpath(*old.split("."))
        assert not taken.with_suffix(".py").exists() and not (taken / "__init__.py").exists()
        assert _moved.new_path(f"ciphervec.{new}") is None, "moved twice"
    assert (
        _moved.new_path("numpy.store") is None
        and _moved.new_path("ciphervec.collections.stores.store") is None
    )


def test_a_pickle_of_release_0_1_is_read() -> None:
    fitted = EncryptedNearestNeighbors(n_neighbors=2).fit(np.eye(4, 8, dtype=np.float32))
    now = pickle.dumps(fitted, protocol=0)
    then = now
    for old, new in _moved.MOVED.items():
        then = then.replace(f"cciphervec.{new}\n".encode(), f"cciphervec.{old}\n".encode())
    # Two old modules are one now.
    then = then.replace(b"cciphervec.index\nEncryptedNearest", b"cciphervec.neighbors\nEncryptedNearest")
    assert then != now
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        again = pickle.loads(then)
    assert "ciphervec.neighbors has moved to ciphervec.collections.index" in str(warned[0].message)
    assert type(again) is EncryptedNearestNeighbors
    rows = again.unlock(fitted.keys_).kneighbors(np.eye(4, 8), 1, return_distance=False)
    assert rows.ravel().tolist() == [0, 1, 2, 3]
