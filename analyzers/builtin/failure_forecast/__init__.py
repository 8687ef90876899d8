"""Forecast of rare node failures from metrics, health errors and attempts of jobs, at a fixed budget of alarms.

Each node is a row a day: how far each metric is from the fleet's median of that day and from the node's own week
before, errors by symptom, failed attempts of jobs, incidents so far; the label is an incident within the horizon.
Failures are one row in hundreds, so that accuracy says nothing: learners weigh the classes alike and are compared by
the area under precision and recall (as for node failures at Azure, Lin et al., "Predicting node failure in cloud
service systems", FSE 2018, whose learners are a neural model, a random forest and a ranking). Here they are a logistic
regression and boosted trees; the better one is taken.

Held-out rows are later than what teaches and of other nodes: neither a node's own habits nor the future leak. They
choose the learner, calibrate its log-odds after the class weight is taken out, and set the threshold at which so many
node-days in a thousand raise an alarm. If the precision of these alarms is not above the usual share (Wilson, 95 %),
the analyzer abstains.

The probable cause of a forecast is that of a naive Bayes network: a kind of incident with symptoms that are independent
given it, tables with Laplace's rule from the days before past incidents (Russell and Norvig, chapter 12).
"""

from analyzers.builtin.failure_forecast.analyzer import ANALYZER

__all__ = ["ANALYZER"]
