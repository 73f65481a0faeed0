"""Certified points keep a limit on a mean: against Student's test, a plain bootstrap, and known populations."""

import numpy as np
import pytest
from scipy import stats

from secateur.errors import InvalidInputError
from secateur.path.confidence import certify_mean, certify_sums, weighted_sums


def certify(differences, confidence=0.95, seed=0, **options):
    return certify_mean(differences, confidence, np.random.default_rng(seed), **options)


def normal(means, n_rows, seed=0, shared=0.7):
    """Return dependent differences with the given true means, (n_points, n_rows)."""
    rng = np.random.default_rng(seed)
    noise = shared * rng.normal(size=n_rows) + (1 - shared) * rng.normal(size=(len(means), n_rows))
    return np.asarray(means, float)[:, None] + noise


# Values


def test_the_statistic_is_that_of_a_t_test():
    differences = normal([-0.2, 0.0, 0.1], 57)
    expected = stats.ttest_1samp(differences, 0.0, axis=1).statistic
    np.testing.assert_allclose(certify(differences).statistic, expected, rtol=1e-12)


@pytest.mark.parametrize("n_rows", [5, 300])
def test_the_critical_value_of_one_point_is_a_quantile_of_students_distribution(n_rows):
    found = [certify(normal([0.0], n_rows), seed=seed).critical for seed in range(20)]
    assert np.mean(found) == pytest.approx(stats.t(n_rows - 1).ppf(0.95), rel=0.03)


def test_the_critical_value_of_independent_points_is_a_quantile_of_their_largest_deviation():
    found = [certify(normal([0.0] * 20, 2000, shared=0.0), seed=seed).critical for seed in range(10)]
    assert np.mean(found) == pytest.approx(stats.norm.ppf(0.95 ** (1 / 20)), rel=0.03)


def test_a_bootstrap_written_row_by_row_certifies_the_same_points():
    differences = normal(np.linspace(-0.4, 0.3, 12), 150)
    n_points, n_rows = differences.shape
    rng = np.random.default_rng(3)
    draws = np.array([[rng.normal() for _ in range(n_rows)] for _ in range(2000)])
    t = differences.mean(axis=1) / (differences.std(axis=1, ddof=1) / np.sqrt(n_rows))
    left, certified = {i for i in range(n_points) if t[i] <= np.sqrt(np.log(n_rows))}, set()
    while left:
        largest = []
        for g in draws:
            deviations = [g @ (differences[i] - differences[i].mean()) / differences[i].std() for i in left]
            largest.append(max(deviations) / np.sqrt(n_rows))
        new = {i for i in left if t[i] <= -np.quantile(largest, 0.95)}
        if not new:
            break
        certified |= new
        left -= new
    assert set(np.flatnonzero(certify(differences).certified)) == certified
    assert 0 < len(certified) < n_points


def test_repeated_rows_and_weights_have_the_same_mean_and_effective_rows_for_equal_weights():
    differences = normal([-0.1, 0.1], 100)
    plain, weighted = certify(differences), certify(differences, weight=np.full(100, 3.0))
    np.testing.assert_allclose(weighted.statistic, plain.statistic)
    assert weighted.n_rows == pytest.approx(100)
    np.testing.assert_array_equal(weighted.certified, plain.certified)


def test_the_standard_error_of_weighted_rows_is_that_of_a_ratio():
    differences, weight = normal([-0.1, 0.1], 100), np.random.default_rng(1).exponential(size=100)
    mean = differences @ weight / weight.sum()
    n_rows = weight.sum() ** 2 / (weight**2).sum()
    variance = (differences - mean[:, None]) ** 2 @ weight**2 / weight.sum() ** 2 * n_rows / (n_rows - 1)
    np.testing.assert_allclose(certify(differences, weight=weight).statistic, mean / np.sqrt(variance))


def test_rows_without_weight_do_not_count():
    differences = np.hstack([normal([-0.2, 0.1], 60), np.full((2, 5), np.nan)])
    weight = np.repeat([1.0, 0.0], [60, 5])
    found = certify(differences, weight=weight)
    np.testing.assert_allclose(found.statistic, certify(differences[:, :60]).statistic)
    assert found.n_rows == pytest.approx(60)


def test_sums_over_blocks_add_up():
    differences, weight = normal(np.linspace(-0.3, 0.3, 9), 5000), np.random.default_rng(1).exponential(size=5000)
    blocks = [slice(start, start + 700) for start in range(0, 5000, 700)]
    total = sum(weighted_sums(differences[:, rows], weight[rows]) for rows in blocks)
    found, whole = certify_sums(total, 0.95, np.random.default_rng(0)), certify(differences, weight=weight)
    np.testing.assert_allclose(found.statistic, whole.statistic)
    np.testing.assert_array_equal(found.certified, whole.certified)
    assert found.critical == pytest.approx(whole.critical)


# Truth


def wrongly_certified(means, draw, n_draws, n_rows):
    """Return in how many draws a point above the limit is certified, and how many points are certified."""
    rng, wrong, certified = np.random.default_rng(0), 0, 0
    for _ in range(n_draws):
        found = certify_mean(draw(rng, n_rows), 0.9, rng).certified
        wrong += found[means > 0].any()
        certified += found.sum()
    return wrong, certified


def tolerated(n_draws, rate=0.1):
    """Return a count that a rate exceeds with a probability below 0.1 %."""
    return stats.binom.ppf(0.999, n_draws, rate)


def test_points_just_above_the_limit_are_certified_in_at_most_the_stated_share_of_draws():
    means = np.array([-0.5, -0.2, 1e-9, 1e-9, 1e-9, 1e-9, 0.05, 2.0])

    def draw(rng, n_rows):
        return means[:, None] + 0.5 * rng.normal(size=n_rows) + 0.5 * rng.normal(size=(len(means), n_rows))

    wrong, certified = wrongly_certified(means, draw, 300, 100)
    # The error rate is used up to a good part: four points are on the limit.
    assert 0.03 * 300 < wrong <= tolerated(300)
    assert certified > 1.5 * 300


def test_the_rate_holds_for_skewed_losses_of_a_population_that_is_known():
    rng = np.random.default_rng(5)
    target = rng.exponential(size=20_000)
    scores = target + rng.normal(size=20_000) * np.linspace(0.5, 0.6, 11)[:, None] * (0.5 + target)
    losses = (scores - target) ** 2
    differences = losses - losses[5].mean() / losses[0].mean() * losses[0] + 1e-9
    means = differences.mean(axis=1)

    def draw(rng, n_rows):
        return differences[:, rng.integers(0, differences.shape[1], n_rows)]

    wrong, certified = wrongly_certified(means, draw, 200, 400)
    assert (means > 0).sum() == 6
    assert wrong <= tolerated(200)
    assert certified > 0


def few_errors(rng, n_rows, share, more):
    """Return differences of zero-one losses for a limit of 5 %, with a share `more` of errors beyond it."""
    wrong = rng.uniform(size=n_rows) < share
    return ((rng.uniform(size=n_rows) < 0.05 * share + more) & ~wrong) - 0.05 * wrong


def test_rare_errors_that_no_row_shows_are_allowed_for_with_the_largest_difference():
    rng, n_draws = np.random.default_rng(0), 400
    draws = [few_errors(rng, 200, 0.05, 0.001)[None] for _ in range(n_draws)]
    assert sum(certify(one, largest=1.0).certified[0] for one in draws) <= tolerated(n_draws, 0.05)
    assert sum(certify(one).certified[0] for one in draws) > 0.3 * n_draws


@pytest.mark.parametrize("n_points", [1, 20, 150])
def test_the_added_rows_need_at_least_as_many_rows_as_errors_that_none_shows(n_points):
    # Without an error among n rows, a share s of errors has a probability of about exp(−n s).
    slack = 0.05
    equal = np.full((n_points, 1), -slack)
    certified = [certify(np.repeat(equal, n, axis=1), largest=1.0 - slack).certified[0] for n in range(2, 200)]
    first = 2 + certified.index(True)
    assert certified[first - 2 :] == [True] * (200 - first)
    assert 3 / slack < first < 3 * 3 / slack


def test_the_rate_holds_for_many_points_with_few_errors_on_the_limit():
    rng, n_draws = np.random.default_rng(0), 200
    wrong = np.zeros(2)
    for _ in range(n_draws):
        before = rng.uniform(size=1000) < 0.08
        more = (rng.uniform(size=(20, 1000)) < 0.05 * 0.08 / 0.92 * 1.001) & ~before
        for i, largest in enumerate((1.0, None)):
            wrong[i] += certify(more - 0.05 * before, largest=largest).certified.any()
    assert wrong[0] <= tolerated(n_draws, 0.05)
    assert wrong[1] > 0.3 * n_draws


def test_the_added_rows_do_not_matter_for_many_rows():
    differences = normal(np.linspace(-0.3, 0.3, 9), 20_000)
    np.testing.assert_allclose(certify(differences, largest=1.0).statistic, certify(differences).statistic, atol=0.05)


def test_more_rows_certify_every_point_below_the_limit():
    assert certify(normal([-0.3, -0.1, -0.05, 0.05, 0.4], 20_000)).certified.tolist() == [True] * 3 + [False] * 2


def test_the_rows_needed_certify_the_best_point_in_most_draws():
    def best(n_rows, seed):
        return certify(normal([-0.1, 0.05], n_rows, seed=seed), seed=seed)

    few = best(60, 2)
    assert not few.certified.any()
    # What a mean of −0.1 and a standard deviation of about 0.76 need, had these rows shown them exactly.
    assert few.rows_needed == pytest.approx(60 * ((few.critical + 0.8416) / few.statistic.min()) ** 2, abs=1)
    needed = round(((few.critical + 0.8416) * np.hypot(0.7, 0.3) / 0.1) ** 2)
    assert np.mean([best(needed, seed).certified[0] for seed in range(100)]) == pytest.approx(0.8, abs=0.12)


# Properties


def single_step(differences, seed=0):
    """Return the points that are certified with one critical value for all of them, a little larger than needed."""
    rng, n_rows = np.random.default_rng(seed), differences.shape[1]
    deviations = differences - differences.mean(axis=1, keepdims=True)
    deviations /= deviations.std(axis=1, keepdims=True) * np.sqrt(n_rows)
    largest = (deviations @ rng.normal(size=(n_rows, 2000))).max(axis=0)
    return stats.ttest_1samp(differences, 0.0, axis=1).statistic <= -np.quantile(largest, 0.96)


@pytest.mark.parametrize("seed", range(10))
def test_step_down_certifies_what_a_single_step_certifies(seed):
    differences = normal(np.linspace(-0.4, 0.4, 15), 200, seed)
    assert not (single_step(differences) & ~certify(differences).certified).any()


def test_step_down_certifies_more_than_a_single_step():
    counts = [
        (certify(differences).certified.sum(), single_step(differences).sum())
        for differences in (normal(np.linspace(-0.6, 0.1, 30), 200, seed, shared=0.0) for seed in range(5))
    ]
    assert all(several >= one for several, one in counts)
    assert any(several > one for several, one in counts)


@pytest.mark.parametrize("scale", [1e-6, 0.5, 4.0, 1e6])
def test_the_unit_of_the_loss_does_not_matter(scale):
    differences = normal(np.linspace(-0.4, 0.4, 9), 100)
    found, expected = certify(scale * differences), certify(differences)
    np.testing.assert_allclose(found.statistic, expected.statistic)
    np.testing.assert_array_equal(found.certified, expected.certified)
    assert found.critical == pytest.approx(expected.critical)


def test_the_order_of_the_points_does_not_matter():
    differences = normal(np.linspace(-0.4, 0.4, 9), 100)
    order = np.random.default_rng(1).permutation(9)
    found, expected = certify(differences[order]), certify(differences)
    np.testing.assert_array_equal(found.certified, expected.certified[order])
    assert found.critical == pytest.approx(expected.critical)


def test_points_that_are_clearly_above_the_limit_do_not_change_the_critical_value():
    differences = normal(np.linspace(-0.4, 0.0, 9), 100)
    above = normal([3.0] * 50, 100, seed=1, shared=0.0)
    assert certify(np.vstack([differences, above])).critical == pytest.approx(certify(differences).critical)


def test_equal_points_count_once():
    differences = normal([-0.1, 0.0], 100)
    found = certify(np.repeat(differences, 30, axis=0)).critical
    assert found == pytest.approx(certify(differences).critical, rel=0.06)


def test_a_higher_confidence_certifies_fewer_points():
    differences = normal(np.linspace(-0.4, 0.4, 30), 200)
    counts = [certify(differences, confidence).certified.sum() for confidence in (0.5, 0.9, 0.99, 0.999)]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) > 2


def test_the_same_draws_give_the_same_result():
    differences = normal(np.linspace(-0.4, 0.4, 9), 100)
    assert certify(differences).critical == certify(differences).critical


# Extremes


@pytest.mark.parametrize(("value", "certified"), [(-0.1, True), (0.0, True), (0.1, False), (-1e-300, True)])
def test_equal_differences_are_certified_if_they_are_at_most_0(value, certified):
    differences = np.vstack([np.full(50, value), normal([-0.9, 0.9], 50)])
    found = certify(differences)
    assert found.certified.tolist() == [certified, True, False]
    assert found.critical == pytest.approx(certify(differences[1:]).critical)


@pytest.mark.parametrize("weight", [None, [2.0]])
def test_one_row_certifies_nothing(weight):
    assert not certify([[-1.0], [0.0], [1.0]], weight=weight).certified.any()
    assert not certify([[-1.0], [0.0], [1.0]], weight=weight, largest=1.0).certified.any()


def test_two_rows_certify_only_what_is_very_clear():
    assert certify([[-1.0, -1.001], [-1.0, -3.0]]).certified.tolist() == [True, False]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_point_with_a_loss_that_is_not_finite_is_not_certified(bad):
    differences = normal([-0.9, -0.9, 0.9], 50)
    spoilt = differences.copy()
    spoilt[1, 7] = bad
    found = certify(spoilt)
    assert found.certified.tolist() == [True, False, False]
    assert found.statistic[1] == np.inf
    assert found.critical == pytest.approx(certify(differences[[0, 2]]).critical)


def test_differences_that_vary_little_around_a_large_mean_are_no_problem():
    rng = np.random.default_rng(0)
    differences = rng.choice([-1.0, 1.0], 40)[:, None] + 3e-6 * normal(np.zeros(40), 500)
    np.testing.assert_array_equal(certify(differences).certified, differences.mean(axis=1) < 0)


def test_no_points_are_no_problem():
    found = certify(np.zeros((0, 10)))
    assert found.certified.shape == (0,)
    assert found.rows_needed is None


# Words


def test_the_shortfall_names_the_rows_needed():
    found = certify(normal([-0.1, 0.05], 60, seed=2))
    assert f"Pass about {found.rows_needed:,} validation rows" in found.shortfall("max_loss_increase")
    assert found.shortfall("max_loss_increase").startswith("60 validation rows cannot show with a confidence of 0.95")


def test_no_number_of_rows_is_named_if_the_best_point_is_above_the_limit():
    found = certify(normal([0.5, 0.9], 60))
    assert found.rows_needed is None
    assert "none of them is below the limit" in found.shortfall("max_loss_increase")


def test_two_rows_are_asked_for_if_there_is_one():
    assert "two rows with finite losses are needed" in certify([[-1.0]]).shortfall("max_loss_increase")


@pytest.mark.parametrize("confidence", [0.0, 0.9999, 1.0, 95, np.nan])
def test_a_confidence_is_a_probability_that_can_be_simulated(confidence):
    with pytest.raises(InvalidInputError, match=r"from 0 to 0\.999"):
        certify([[0.0, 1.0]], confidence)


@pytest.mark.parametrize("weight", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, np.nan]])
def test_weights_are_checked(weight):
    with pytest.raises(InvalidInputError, match="one finite number of at least 0 for each of 2 rows"):
        certify([[0.0, 1.0]], weight=weight)


@pytest.mark.parametrize("differences", [[0.0, 1.0], np.zeros((3, 0))])
def test_the_shape_of_the_differences_is_checked(differences):
    with pytest.raises(InvalidInputError, match=r"\(n_points, n_rows\)"):
        certify(differences)
