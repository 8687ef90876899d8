"""Names the node that slows or stops a training job, from iteration times and per-second metrics of nodes.

After Minder (Deng et al., NSDI 2025): nodes of one job do the same work, so that a faulty one is unlike its peers, in
some metric, for minutes. After GREYHOUND (Wu et al., USENIX ATC 2025): a fail-slow shows in the job's iteration times,
and those say since when. Neither is enough alone: nodes are unlike for many reasons (a checkpoint writer, an
evaluation, a hot expert), and iterations become slower for many (a longer sequence, fewer nodes).

- Metrics are compared within one name and one job, role and model of node (`analyzer.COHORT`). At each slice of time
  a series is held against the median of its peers, as a share of that median: a change of workload moves all, and
  nobody against the others. What a node always differed by in the history is taken off, up to what is usual.
- A deviation is what a series keeps up for `persist_seconds`: the largest value of the least in that time, of the
  running median of a minute. Metrics that say which side is worse (`direction`) count on that side alone.
- Chance: deviations of all peers, those of the history included, have an exponential tail above their median, whose
  scale is read off their quartile. Evidence is the logarithm of one over the number of healthy series that are
  expected to deviate as much, over all metrics. The neural denoising of Minder is replaced by that running median.
- The job speaks last: a deviation counts while the job's iterations are slower than before it, or have ended. A node
  that is apart while the job keeps its pace does not hold it up. Without iteration times only evidence of its own
  names a node; one that was apart from the first row on is named by metrics of its pace alone (clock, FLOPS).
- What comes and goes three times is no fault that lasts: checkpoints, evaluations and shared GPUs look so. A node is
  slow in bursts if a metric of its pace or its links is apart for `persist_seconds` of the window in all, beyond what
  series exceed so long by chance, and iterations in the bursts take longer than those right between them; load and
  host, which checkpoints and sharing move in bursts too, do not count.

The score is a cautious reading of the evidence (`calibration`).
"""

from analyzers.builtin.straggler.analyzer import ANALYZER

__all__ = ["ANALYZER"]
