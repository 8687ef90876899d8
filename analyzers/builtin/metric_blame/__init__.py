"""Names the service or component whose metrics changed first and most, with the indicator and the path to the symptom.

After BARO (Pham et al., FSE 2024): a window is held against its history in robust deviations, which peaks in the
history do not stretch. After PRISM (Pham, arXiv 2601.21359, 2026): indicators are internal (CPU, memory, disk) or
external (latency, errors, availability); the cause changed in both, what waits for it in external ones alone.
Beyond both:

- a change counts by what its own series kept up in the history, and over all series at once (`change`), so that calm
  windows name nobody, and a series that often jumps says little;
- where `topology` says who calls whom, each component is tried as the cause of all changes, and explains those of its
  callers as far as the time or the errors that it can have passed on (`blame`);
- a load that grew for all is taken off latencies and resources; load itself accuses nobody.

A component is named where callers of some component fare worse than chance explains. Internal changes that nobody
notices are `inconclusive`. Evidence of the named one is its weight against that of all others together (log-odds), at
most that of the symptom against chance; the score is calibrated on simulations (`calibration`).
"""

from analyzers.builtin.metric_blame.analyzer import ANALYZER

__all__ = ["ANALYZER"]
