"""Says which components' metrics changed, and since when, by Bayesian online change-point detection.

The recursion is that of Adams and MacKay (Bayesian Online Changepoint Detection, arXiv 0710.3742), as it stands in
`analyzers.builtin.stats.changepoint`; there outliers, dependent samples and gaps are dealt with. Around it:

- Counters (`_total`, or what only grows) are read as growth; positive series with a long upper tail as logarithms.
- What is usual is learnt from the windows before. A level counts as new if it is further from the usual one than
  blocks of the same length were in nine tenths of that time, by half (`detect.EXCESS`): load that comes and goes by the
  hour is usual, one fault in the history changes little. A level that was there a day before, at the same time of
  day, is no change, nor is one that is reached by drifting.
- Evidence is the log odds that a series left its reference, less the logarithm of how many series were judged: with
  ten thousand series one of them looks changed by chance.
- A metric that changed alike on half of the components that have it, at the same time, changed for all: it names
  nobody.

The onset is the shortest interval that holds 95 % of the posterior over beginnings of the new segment. A change is no
fault, so no probability of one is stated: scores are null.
"""

from analyzers.builtin.changepoint.analyzer import ANALYZER

__all__ = ["ANALYZER"]
