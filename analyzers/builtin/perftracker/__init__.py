"""Names the function and the worker that slow a training job, from behaviour patterns of a profile.

After EROICA (PerfTracker; Guan et al., NSDI 2026, arXiv 2506.08528): each function of each worker is three numbers: the
share of the critical path (beta), the mean use of its resource while it runs (mu) and the spread of that use (sigma).
Workers of one role do the same, so that a worker at fault differs from its peers in one function: differential
observability. A function that takes too much on all workers is a common cause: code or configuration. No worker differs
then, so it is compared with earlier profiles of the job: a step that stays is named, what comes and goes is not.

Method `robust` (default):

- Deviations are logarithms of the ratio to the median of the role, one a component. Their tails are learnt from the
  better half of the workers (`builtin/stats/tails.py`). The three are joined by Fisher's method, widened where the
  joint distribution of all workers is wider than that of independent components.
- Only the worse side counts: less use of the resource, more of the critical path. In a collective more of the critical
  path is waiting for others: a victim, unless its own use is low. Less of it than all others have is arriving last.
- Guards: functions that matter (`least_share` of the critical path), changes that matter (`least_change`), and so few
  workers at once that they are no group that does other work (`most_apart`).

Method `published`: expected ranges (Python 1 %, collectives 30 % of the critical path), components over the largest of
all workers, the share of peers farther than .4 away, above its median by five median deviations. Peers are a hundred
evenly chosen by distance from the median, not at random. With workers that differ by 10 % it names dozens of healthy
ones of 1,024; the robust scales and the guards are the answer to that.
"""

from analyzers.builtin.perftracker.analyzer import ANALYZER

__all__ = ["ANALYZER"]
