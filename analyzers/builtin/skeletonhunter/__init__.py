"""Names the network component behind lost and late probes between endpoints of training jobs.

After SkeletonHunter (Liu et al., SIGCOMM 2025). An endpoint is a container with one of its network cards (RNIC).

- *Skeleton* (`skeleton`): the parallelism of each job is read off the throughput of its RNICs; who communicates makes
  the ping list, a few per cent of the full mesh.
- *Detect* (`detect`): answers of each pair in slices of 30 s. A slice is anomalous if its local outlier factor (Breunig
  et al., SIGMOD 2000) against the ten before it is above `lof`, or the window if the lognormal means of two periods
  differ (Welch's test), each only if the answers are later by a share that matters. Losses count as they are.
- *Localise* (`localise`): overlay faults by replaying the flow tables of anomalous pairs, underlay faults by votes of
  their paths, what is left by comparing offloaded flow tables with those of the virtual switches.

No verdict is passed on an endpoint before both ends are registered, and none on a single slice of a single pair.
The published constraints of the clustering hold for any equal partition, one cluster included; what is added is a
separation criterion (the largest mean silhouette). The votes are those of `voting`, by likelihood or by majority.
"""

from analyzers.builtin.skeletonhunter.analyzer import ANALYZER

__all__ = ["ANALYZER"]
