"""Failure rate of far against near placement, with its confidence interval.

After the colocation figure of Deepview's talk (Zhang et al., NetAI 2018). Failures per time up are compared, far
against near, within strata of `stratum_hours`, so that a bad day biases nothing: the ratio of Mantel and Haenszel
with the interval of Greenland and Robins (1985), widened by the dispersion between strata, because failures come in
clumps, and by that between units, because some fail again and again (`builtin/stats/rate_ratio.py`). It measures and
names nobody.

Not compared: other differences between the placements, such as size or age. Repeated failures of one unit count each.
"""

from analyzers.builtin.colocation.analyzer import ANALYZER

__all__ = ["ANALYZER"]
