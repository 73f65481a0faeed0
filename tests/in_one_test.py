"""Run a test for many values of a parameter without collecting each as a test."""

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

Test = Callable[..., None]


def for_each(name: str, values: Collection[Any]) -> Callable[[Test], Test]:
    """Return a decorator that calls a test with each value of a parameter in turn; a failure names the value.

    It replaces `pytest.mark.parametrize(name, values)` where nobody looks for the result of a single value.
    """
    assert values, f"no values for {name}"

    def decorate(test: Test) -> Test:
        @wraps(test)
        def test_all(**given: Any) -> None:
            for value in values:
                try:
                    test(**given, **{name: value})
                except Exception as error:
                    error.add_note(f"{name}={value!r}")
                    raise

        # pytest reads the names of fixtures and parameters from the signature.
        signature = inspect.signature(test)
        rest = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        test_all.__signature__ = signature.replace(parameters=rest)
        return test_all

    return decorate
