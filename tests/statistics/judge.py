"""Statistical verdicts. Each returns a p-value; `reject_below` is the threshold of the everyday run."""

import numpy as np
from scipy import stats

REJECT_BELOW = 1e-4


def pearson(observed, expected, least=10.0):
    """Pearson's chi-square with rare cells pooled. Both are counts over the same cells."""
    order = np.argsort(expected)
    observed, expected = observed[order], expected[order]
    rare = np.cumsum(expected) < least
    cut = min(int(rare.sum()) + 1, len(expected) - 1)
    o = np.append(observed[:cut].sum(), observed[cut:])
    e = np.append(expected[:cut].sum(), expected[cut:])
    late = e[1:] < least  # what is still rare after the first pool
    o, e = np.append(o[0] + o[1:][late].sum(), o[1:][~late]), np.append(e[0] + e[1:][late].sum(), e[1:][~late])
    assert len(e) > 1, "everything was pooled"
    return float(stats.chi2.sf(((o - e) ** 2 / e).sum(), len(e) - 1))


def same_mean(a, b, batches=40):
    """p-value that two series, each perhaps autocorrelated, have the same mean: batch means, then Welch's t."""
    means = [np.array([part.mean() for part in np.array_split(np.asarray(series, dtype=float), batches)]) for series in (a, b)]
    if np.ptp(np.concatenate(means)) == 0:
        return 1.0
    return float(stats.ttest_ind(*means, equal_var=False).pvalue)


def smallest(p_values):
    """Bonferroni over a dictionary of p-values: (adjusted p, which)."""
    which = min(p_values, key=p_values.get)
    return min(1.0, p_values[which] * len(p_values)), which


def assert_rejected(p_values_of, n):
    """Of most mutants a sixth of the draws is enough."""
    for draws in (n // 6, n):
        result = p_values_of(draws)
        if smallest(result)[0] < REJECT_BELOW / 100:
            return
    raise AssertionError(result)
