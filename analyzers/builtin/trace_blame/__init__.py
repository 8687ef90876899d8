"""Names the service whose operations, calls or outcomes changed.

A fault makes every caller slow, a network fault shows in no span of the guilty service, and an exception makes
requests faster. Three kinds of place are compared with the windows before: own time (a span without the union of its
children), the way of a call (the caller's span less the called one), and shape (called operations, own error). Each
change can be explained by one service, or by the two ends of a call; the service that explains the whole is named.

- A change is weighed against the drift between windows by random effects (a Bayes factor against a fault of any size),
  not only against the noise of a mean; the median of the history is normal. Rare operations are drawn towards all
  others by empirical Bayes.
- A fault touches an unknown share of a service's places (averaged over a tenth, a half, nine tenths). One place says at
  most 12 nats, one span at most 2.
- A set of calls that the history never saw is weighed by how often the history saw something once (Good 1953), and
  counts for the deepest odd service.
- Calls whose other side sent no spans accuse nobody unless they fail or come back at once.
- What load adds is predicted by a queue whose use the history shows (`load`); what the middle service shifts beyond
  that, up to a factor 2.7, is subtracted, too.
- A fault that began in the history is looked for by its oldest windows alone, and must show in the last ones as well.
- One instance is named when the others show nothing without it.

Inconclusive without history or with fewer than 20 traces in it. Only durations of one clock are subtracted. The score
is calibrated by simulation (`calibration`).
"""

from analyzers.builtin.trace_blame.analyzer import ANALYZER

__all__ = ["ANALYZER"]
