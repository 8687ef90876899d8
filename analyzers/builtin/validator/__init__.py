"""Names nodes that pass every health check and are slower than their fleet, from benchmark results.

After SuperBench (Xiong et al., USENIX ATC 2024): whole distributions are compared, and the fleet says what is normal.

- Criteria per benchmark, metric, rank and SKU: the medoid without what is dissimilar to it, until the rest agrees. The
  distance is the area between distributions over the medoid's mean, in one dimension the mean difference of quantiles
  (`builtin/similarity.py`). Only the part in which a node is worse counts (`builtin/directions.py`).
- Two bars: below `similarity`, and worse by `spreads` times the spread of the better half of the healthy nodes.
- More than chance: nodes beyond the bars are tests; at most `most_false` of the blamed may be healthy (Benjamini and
  Hochberg 1995). The tail is Student's t with degrees of freedom from the better half, shared among metrics by
  empirical Bayes (`builtin/tails.py`).
- With history, the first question is which nodes became worse than they were; a node that always was odd is no step.
- A metric is not judged if more than `most_failing` of the nodes differ (two kinds of node, a roll-out), if results do
  not repeat between windows, or below `min_nodes`.

The score is from the number of healthy nodes expected as far off, by simulation (`calibration`). Correlation across
metrics and trends of a node are not used.
"""

from analyzers.builtin.validator.analyzer import ANALYZER

__all__ = ["ANALYZER"]
