"""Real monitoring systems, run for a moment so that they send: to an endpoint, or to a recorder of goldens.

`python -m tests.senders` writes `tests/golden/payloads` anew; `deploy/install-senders.sh` installs what it runs.
"""
