"""Real monitoring systems, run for a moment so that they send: to a door, or to a recorder that makes goldens of it.

`python -m tests.senders` writes `tests/golden/payloads` anew; `deploy/install-senders.sh` installs what it runs.
"""
