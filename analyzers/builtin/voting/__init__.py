"""Names the links or devices that failing flows have in common.

007 (Arzani et al., NSDI 2018) ranks by votes, and its published cut accuses links in healthy windows. `explain`: a
packet is lost with probability 1 - exp(-(b + sum of theta over its path)); the component whose rate adds most to the
likelihood enters, noise is learnt again from paths without it, all are refitted, until nobody adds
log(components of the kind x kinds) + `margin` - log(blamed) nats; then pruned. `007` and `majority` (SkeletonHunter's
underlay step) are parameters.

- Noise has one rate for all paths with as many components of each kind, at its 95 % upper bound, without the
  candidate's own paths, because rates of link classes cannot be told apart.
- A failing row counts its losses up to one more than noise explains, and losses must be those of three pairs of
  hosts: a burst is one witness.
- The bar falls with the number of blamed, so that the share of false ones is bounded (Benjamini and Hochberg 1995).
- Where much is lost anyway, a component's losses must stand out from the tail of its peers', taken with what the
  blamed lose explained. Its longest paths must lose as its shorter ones do: else hops are missing from these.
- Components on the same paths are merged first; what explains within one nat as much is `ambiguous_with`.
- Where only failing flows name their path, components are compared with peers of their kind by failing flows alone.

Inconclusive: no hops, one path, 5 % of packets lost with nobody to explain them, more than 80 % lost with several
suspects. No history is read. The score is calibrated by simulation (`calibration`).
"""

from analyzers.builtin.voting.analyzer import ANALYZER

__all__ = ["ANALYZER"]
