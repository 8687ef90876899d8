"""Risk of a change before it goes out: a decision tree over past changes and their outcomes, with the path cited.

The idea is that of VeriCI (Santolucito, Zhang, Zhai and Piskac, "Statically verifying continuous integration
configurations", OOPSLA 2018): learn from the history of configurations with known outcomes by a decision tree, cite
the path of the tree as the reason, and refine the features only where the coarse ones misclassify. Differences:

- The outcome is an incident or a rollback of a change to production instead of a failed build, and is rare. So the
  answer is a probability with an interval and not a class.
- A split is drawn from a change's sort, team, author, targets, changed keys, figures (lines, reviewers, rollout) and
  hour, and from what became of earlier changes of that team and those targets. An outcome counts from the moment at
  which it was known: nothing later than a change is used for its features, and folds are blocks of time.
- Values of keys (`key=value`) are tried only where trees of coarse features leave loss that they remove, the
  refinement of the abstraction in one step.

The share of a node is shrunk to that of its parent: (k + m p_parent) / (n + m), from the root down, m = 4; the interval
is that of the beta distribution with these counts. A split must gain a least log-likelihood, the one with the least
log loss in time-ordered folds; if no tree beats the usual share there, the usual share is the answer. The
calibration log-odds -> a + b log-odds, with a normal prior and b up to 0.9, is fitted to predictions that each block of
time gets from a choice made on the blocks before it: predictions of a choice that has seen the block are too good.
"""

from analyzers.builtin.config_risk.analyzer import ANALYZER

__all__ = ["ANALYZER"]
