"""Computes with SciPy the figures that `scipy.rs` expects, and prints them.

How to run it, from anywhere:

    python3 -m venv scipy-venv && scipy-venv/bin/pip install 'scipy==1.17.1' 'numpy==2.4.6'
    scipy-venv/bin/python lab/results/tests/scipy.py

The data are made from whole numbers by a short formula, the same as in `scipy.rs`, so no list of numbers has to be kept
in two places. The bootstrap uses 200,000 resamples here; all else is exact.
"""

import sys

sys.path.pop(0)  # The folder of this file, which has SciPy's name.

import numpy
import scipy
from scipy import special, stats


def samples(n, step, modulus, start, width=1.0):
    """The n samples start + (i * step mod modulus) * width."""
    return start + width * (numpy.arange(n) * step % modulus).astype(float)


# Name, first side, second side: as `cases()` in scipy.rs.
CASES = [
    ("few", samples(4, 7, 11, 100.0), samples(5, 5, 13, 103.5)),
    ("six", samples(6, 3, 17, 50.0, 0.5), samples(6, 5, 19, 54.25, 0.75)),
    ("apart", samples(8, 5, 13, 10.0), samples(8, 7, 23, 1000.25)),
    ("tied", samples(9, 3, 5, 20.0), samples(12, 5, 7, 21.0)),
    ("unequal", samples(15, 37, 101, 500.0), samples(40, 53, 211, 480.5)),
    ("skewed", samples(25, 7, 29, 1.0) ** 3, samples(25, 11, 31, 2.5) ** 3),
    ("many", samples(200, 37, 211, 1000.0), samples(300, 53, 307, 990.0)),
    ("tiny", samples(7, 3, 17, 1.0) * 1e-12, samples(9, 5, 19, 2.5) * 1e-12),
]

# As `FAMILIES` in scipy.rs.
FAMILIES = [
    [0.01, 0.04, 0.03, 0.005],
    [0.5, 0.9, 0.7],
    [0.001, 0.2, 0.0004, 0.06, 0.013, 0.0004, 1.0, 0.049],
]


def holm(p):
    """Holm's correction, written out from his definition: the largest of (m - j) p(j) up to each."""
    order = numpy.argsort(p)
    scaled = (len(p) - numpy.arange(len(p))) * numpy.array(p)[order]
    out = numpy.empty(len(p))
    out[order] = numpy.minimum(numpy.maximum.accumulate(scaled), 1.0)
    return out


def bootstrap(data, statistic, method, paired=False):
    """SciPy's 95 % interval."""
    result = stats.bootstrap(
        data, statistic, method=method, paired=paired, vectorized=True, n_resamples=200_000,
        batch=2_000, rng=numpy.random.default_rng(1),
    )
    return result.confidence_interval


def ratio(a, b, axis=-1):
    return a.mean(axis=axis) / b.mean(axis=axis)


def show(name, *figures):
    print(f"{name}: " + ", ".join(repr(float(figure)) for figure in figures))


print(f"SciPy {scipy.__version__}, NumPy {numpy.__version__}")
for name, a, b in CASES:
    print(f"-- {name}")
    welch = stats.ttest_ind(a, b, equal_var=False)
    show("welch", welch.statistic, welch.df, welch.pvalue)
    show("welch interval", *welch.confidence_interval())
    ranks = stats.mannwhitneyu(a, b)
    show("rank sum", ranks.statistic, ranks.pvalue)
    reach = stats.t.ppf(0.975, len(a) - 1) * stats.sem(a)
    show("student", a.mean() - reach, a.mean() + reach)
    n = min(len(a), len(b))
    show("ratio", *bootstrap((a, b), ratio))
    show("paired", *bootstrap((a[:n], b[:n]), ratio, paired=True))
    pairs = stats.wilcoxon(
        b[:n] - a[:n], zero_method="wilcox", correction=n > 50, method="auto" if n > 50 else
        stats.PermutationMethod(n_resamples=numpy.inf) if n <= 12 else "exact",
    )
    show("signed rank", pairs.statistic, pairs.pvalue)
    paired = stats.ttest_rel(a[:n], b[:n])
    show("paired t", paired.statistic, paired.df, paired.pvalue)
    logs = stats.ttest_rel(numpy.log(a[:n]), numpy.log(b[:n])).confidence_interval()
    show("log ratios", *numpy.exp(logs))
    logs = stats.ttest_ind(numpy.log(a), numpy.log(b), equal_var=False).confidence_interval()
    show("log means", *numpy.exp(logs))
for p in FAMILIES:
    show("holm", *holm(p))
