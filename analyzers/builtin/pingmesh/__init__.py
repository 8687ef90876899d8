"""Names the network layer, pod, podset or server behind slow and dropped probes between servers.

After Pingmesh (Guo et al., SIGCOMM 2015), whose patterns are read off a heat map by eye. Drops are derived from
times: an answer after [2.5, 4.5) s had one packet dropped, one after [8.5, 10.5) s two, counted once. Probes without
an answer are not drops.

- A block (podset to podset) is red if its drops (`drop_alert`) or late answers (`p99_alert_us`) have a binomial tail
  below `alpha`, shared among tests of a kind, and it is still above the limit without its worst quarter of pods. The
  published crosses are told apart by the shares of red blocks.
- Larger causes are explained first: Spine, podsets, pods, servers. A pod or a server must be above a limit as
  source and as destination.
- A server is silent if it was probed and neither answered nor had an answer in the last three minutes; a pod or podset
  is down if 90 % of its servers are.
- Black holes: pairs that lose more than both ends usually do; the ToR with the largest share of bad pairs explains them
  before the next is scored.
- Events must be spread over `persist_minutes` (inverse Simpson index of the minutes); bursts name nobody.

Probes have no path, so the switch within a layer is not named. Without topology only servers are judged. The score is
calibrated by simulation (`calibration`).
"""

from analyzers.builtin.pingmesh.analyzer import ANALYZER

__all__ = ["ANALYZER"]
