"""Names the component that failing paths share and healthy paths avoid.

Deepview (Zhang et al., NSDI 2018) with a binomial likelihood in place of the Lasso; `method=lasso` is as published.
With eta the sum of theta over the components of a path, e failures and N_j units of component j, the log-likelihood
is

    sum over failing paths of e log(expm1(eta)) - sum over j of N_j theta_j

so healthy paths are one number per component, and cost follows what fails. The Lasso has the same property through
X'z; a component whose correlation with the failures is below the penalty can never enter, because all is
non-negative.

- Selection: forward by evidence; after each step components are exchanged for better ones, refitted jointly, pruned.
  What could replace a blamed component within 3 nats, or lies on the same paths, is `ambiguous_with` it.
- Bar: evidence above log(components of the kind x kinds) + log(windows a day) + `margin`, rate above `min_rate` and
  the baseline (three times that while the history is short), `min_witnesses` hosts. A host counts once over all its
  paths in the likelihood of witnesses; the smaller gain of units and witnesses is the evidence. Where hosts are
  unknown, the over-dispersion of the history divides it.
- Baseline: windows of the history without the components that stand out in them; rate, noise and habit from medians,
  the rate at its upper 95 % bound. Without history the window itself less its own suspects.
- Score: share of suspects with that much evidence that were at fault in simulations (`binomial.SCORES`), lowered where
  an assumption fails. `sure` from `sure_margin` above the bar.

Inconclusive: no units placed, failures of unplaced units prevail, one path, or more than 80 % fail with several
suspects. Correlation over successive windows is not used: faint faults need longer windows.
"""

from analyzers.builtin.deepview.analyzer import ANALYZER

__all__ = ["ANALYZER"]
