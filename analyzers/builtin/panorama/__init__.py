"""Names what its callers see fail: gray failures, failing processes and unreliable observers.

Panorama (Huang et al., OSDI 2018) gives each observer one vote; with many overloaded observers the vote accuses the
healthy. Here a cell (observer, subject, context) is bad if its observer is unreliable, or its subject fails in that
context, or in all contexts that callers use; the most probable set of culprits is found by ascent. `method=paper` is
the published vote.

- Each cell is one witness: a beta-binomial likelihood ratio of bad against usual, bounded at 7 nats. A subject with two
  observers needs both; an observer must be wrong about two subjects.
- Every second is judged on the `look_back_seconds` before it; an episode has change points by maximum likelihood as its
  ends. Named is what lasts `patience_seconds` and goes on, or lasted `least_seconds`.
- A process that is gone altogether may be restarting: named after `restart_seconds`, inconclusive before.
- Usual failures are a low quantile of the windows before, by subject and context and by pair, up to a ceiling set by
  the other places, so that no history makes an outage usual.
- A gray failure is a subject whose callers fail while probes (`probe_contexts`) succeed at the same time.
- Calls that were sent and not answered within the usual time hang; lost reports look alike, so the least four fifths
  of the cells say how much of that is usual.

Inconclusive without observations, or when more than 60 % of the observers complain about everyone. With one sound
observer left a failure is not named; a link between two processes is no culprit of its own. The score is calibrated
by simulation (`calibration`).
"""

from analyzers.builtin.panorama.analyzer import ANALYZER

__all__ = ["ANALYZER"]
