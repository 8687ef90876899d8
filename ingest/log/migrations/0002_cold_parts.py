"""Parts of the log that are moved into files (`ingest.log.move`)."""

from django.db import migrations

# `state`: `writing` (the files may be half written), `cold` (readers take the events from the files; the table is still
# there for those who do not know it yet), `detached` (the table is no part of the log any more), `moved` (it is dropped).
TABLE = """
CREATE TABLE log_cold (
    first bigint PRIMARY KEY REFERENCES log_part (first),
    state text NOT NULL CHECK (state IN ('writing', 'cold', 'detached', 'moved')),
    file text NOT NULL,
    events bigint,
    bytes bigint,
    changed_at timestamptz NOT NULL
);
"""


class Migration(migrations.Migration):
    dependencies = [("log", "0001_initial")]
    operations = [migrations.RunSQL(TABLE)]
