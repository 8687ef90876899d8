"""Flows and the paths that they share: who explains the failing ones, by likelihood and by votes. `voting` and
`skeletonhunter` are made of these.
"""
