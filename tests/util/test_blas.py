"""BLAS has one thread while a path is computed or evaluated, and the previous number afterwards."""

import multiprocessing
import threading

import pytest
from tests.cases import case
from threadpoolctl import threadpool_info, threadpool_limits

import secateur as sc
from secateur._util.blas import one_blas_thread


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """Let BLAS have two threads, whatever the tests around have."""
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS cannot have two threads")
        yield


def test_nested_contexts_use_one_thread_and_restore_the_limit():
    with one_blas_thread:
        with one_blas_thread:
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_last_thread_to_leave_restores_the_limit():
    first, second, seen = threading.Event(), threading.Event(), []

    def stay():
        with one_blas_thread:
            first.set()
            second.wait(10)
            seen.append(blas_threads())

    thread = threading.Thread(target=stay)
    thread.start()
    first.wait(10)
    with one_blas_thread:
        pass
    second.set()
    thread.join()
    assert seen == [{1}]
    assert blas_threads() == {2}


def test_an_error_inside_restores_the_limit():
    with pytest.raises(KeyError), one_blas_thread:
        raise KeyError
    assert blas_threads() == {2}


def _report_threads(queue):
    with one_blas_thread:
        queue.put(blas_threads())


def test_a_fork_while_others_are_inside_does_not_wait_for_them():
    first, stop = threading.Event(), threading.Event()

    def come_and_go():
        while not stop.is_set():
            with one_blas_thread:
                first.set()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    first.wait(10)
    context = multiprocessing.get_context("fork")
    try:
        for _ in range(20):
            queue = context.Queue()
            process = context.Process(target=_report_threads, args=(queue,))
            process.start()
            assert queue.get(timeout=20) == {1}
            process.join(20)
            assert process.exitcode == 0
    finally:
        stop.set()
        thread.join()


def test_paths_are_computed_and_evaluated_with_one_thread():
    c, seen = case("random forest regressor"), []
    path = sc.prune_path(c.model, c.X, c.y, solver="block_descent", progress=lambda *_: seen.append(blas_threads()))
    assert seen
    path.evaluate(c.X, c.y, progress=lambda *_: seen.append(blas_threads()))
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == {2}
