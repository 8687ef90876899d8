"""Parts of the log after a jump of its numbers (the sequence was set, or many were drawn while nobody made parts): one
part takes the numbers that were left out. A part for each `size_` of them would take several locks for each, in one
transaction, and readers would plan for all of them."""

from django.db import migrations

PARTS = """
CREATE OR REPLACE FUNCTION log_make_parts(size_ bigint, ahead_ integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made integer := 0;
    reached bigint;
    first_ bigint;
    until_ bigint;
    part text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('log_part', 0));
    SELECT last_value INTO reached FROM log_event_number;
    WHILE (SELECT count(*) FROM log_part WHERE first > reached) < ahead_ LOOP
        SELECT coalesce(max(until), 0) INTO first_ FROM log_part;
        until_ := first_ + size_ * greatest(1, (reached - first_) / size_);
        part := 'log_event_p' || first_;
        EXECUTE format('CREATE TABLE %I (LIKE log_event INCLUDING DEFAULTS)', part);
        EXECUTE format('CREATE UNIQUE INDEX %I ON %I (stream, version)', part || '_version', part);
        EXECUTE format('CREATE TRIGGER log_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I'
            ' FOR EACH STATEMENT EXECUTE FUNCTION log_refuse_change()', part);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER log_event_append_only', part);
        EXECUTE format('ALTER TABLE log_event ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', part, first_, until_);
        INSERT INTO log_part (first, until) VALUES (first_, until_);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("log", "0002_cold_parts")]
    operations = [migrations.RunSQL(PARTS)]
