"""The event log, its parts, its epochs and its followers' places. There is no way back on purpose: events are never dropped."""

from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# No CHECK constraints: for every INSERT Postgres reads, plans and prepares the text of each anew. The functions below
# check the same; nothing else writes to the table.
#
# `log_event` is partitioned by the number of an event: parts are equally large, and a part is full for good once its
# last number is drawn. A key over (stream, version) cannot span parts, so `log_stream` has one row for each stream: its
# primary key is what lets a stream begin once, and the update of its row what lets a version be given once.
TABLES = """
CREATE TABLE log_epoch (
    epoch integer PRIMARY KEY CHECK (epoch BETWEEN 1 AND 65535),
    system_identifier bigint NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT now()
);

CREATE SEQUENCE log_event_number;
CREATE TABLE log_event (
    epoch integer NOT NULL,
    txid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    seq bigint NOT NULL DEFAULT nextval('log_event_number'),
    stream text NOT NULL,
    version integer NOT NULL,
    type text NOT NULL,
    schema integer NOT NULL,
    -- Text and not jsonb: the hash is over these very characters.
    body text NOT NULL,
    actor text NOT NULL,
    cause text,
    trace text,
    occurred_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    hash bytea NOT NULL
) PARTITION BY RANGE (seq);
CREATE UNIQUE INDEX log_event_position ON log_event (epoch, txid, seq);

-- Where each stream stands: version, hash and position of its last event, and the number of its first. Repeats what the
-- events say; `verify_log` compares both.
CREATE TABLE log_stream (
    stream text PRIMARY KEY,
    version integer NOT NULL,
    hash bytea NOT NULL,
    epoch integer NOT NULL,
    txid xid8 NOT NULL,
    seq bigint NOT NULL,
    first_seq bigint NOT NULL
) WITH (fillfactor = 80);

-- The parts: numbers from `first` on, below `until`. `full_at` is a transaction id at which all of its numbers had been
-- drawn; when no older transaction is at work any more, `last_*` says where the part ends in the total order, and
-- `reach` is the highest number up to there, which may be one of a later part.
CREATE TABLE log_part (
    first bigint PRIMARY KEY,
    until bigint NOT NULL,
    full_epoch integer,
    full_at xid8,
    last_epoch integer,
    last_txid xid8,
    last_seq bigint,
    reach bigint
);

CREATE TABLE log_follower (
    name text PRIMARY KEY,
    epoch integer NOT NULL DEFAULT 0,
    txid xid8 NOT NULL DEFAULT '0',
    seq bigint NOT NULL DEFAULT 0,
    moved_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    error text,
    retry_at timestamptz
);
"""

# Transaction ids are only comparable inside one cluster. An epoch is a stay of the log in one cluster, known by its
# system identifier. Readers ask for the epoch that holds now, writers also write it down. Both look each time, so that a
# restore needs no command that someone could forget. A server process never changes its cluster: it reads the identifier
# (from a file) once and keeps it in a setting of its session.
EPOCHS = """
CREATE FUNCTION log_cluster() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    known text := current_setting('dossier.cluster', true);
BEGIN
    IF known IS NULL OR known = '' THEN
        known := set_config('dossier.cluster', (SELECT system_identifier::text FROM pg_control_system()),
        false);
    END IF;
    RETURN known::bigint;
END
$$;

CREATE FUNCTION log_live_epoch() RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
    newest integer;
    cluster bigint;
BEGIN
    SELECT epoch, system_identifier INTO newest, cluster FROM log_epoch ORDER BY epoch DESC LIMIT 1;
    RETURN CASE WHEN cluster = log_cluster() THEN newest ELSE coalesce(newest, 0) + 1 END;
END
$$;

CREATE FUNCTION log_enter_epoch() RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    newest integer;
    cluster bigint;
BEGIN
    SELECT epoch, system_identifier INTO newest, cluster FROM log_epoch ORDER BY epoch DESC LIMIT 1;
    IF cluster = log_cluster() THEN
        RETURN newest;
    END IF;
    -- Two first writers meet here: the second waits for the first and finds the row.
    INSERT INTO log_epoch (epoch, system_identifier) VALUES (coalesce(newest, 0) + 1, log_cluster())
    ON CONFLICT (epoch) DO NOTHING;
    RETURN coalesce(newest, 0) + 1;
END
$$;
ALTER TABLE log_event ALTER COLUMN epoch SET DEFAULT log_enter_epoch();
"""

# A function, because the server keeps its plans: planning these statements anew costs more than running them. Bodies
# come as lines of one text (canonical JSON has no line breaks) and hashes as one string of 32 bytes each: as arrays they
# were the largest part of reading the call. It answers with epoch, transaction id and then the number of each event (one
# array: cheaper than a row), or with null, having written nothing, when the stream stands elsewhere: at another version,
# at another hash than the new events are chained to, or at a later transaction id: a transaction that got its id early
# and appends late would place version 5 before version 4 for everyone who reads in the total order. Numbers are drawn
# after the transaction has its id (`ingest.log.parts` counts on it).
APPEND = """
CREATE FUNCTION log_append(
    stream_ text, after_version integer, after_hash bytea, actor_ text, cause_ text, trace_ text,
    recorded_at_ timestamptz, types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    count_ integer := cardinality(types);
    epoch_ integer;
    txid_ xid8;
    seq_ bigint;
    seqs bigint[];
BEGIN
    IF stream_ = '' OR actor_ = '' OR cause_ = '' OR trace_ = '' OR after_version < 0 OR 0 >= ANY (schemas)
            OR length(hashes) <> 32 * count_ THEN
        RAISE EXCEPTION 'this is no event: a name is empty, a number is not above zero or a hash has not 32 bytes'
            USING ERRCODE = 'check_violation';
    END IF;
    SELECT CASE WHEN system_identifier::text = current_setting('dossier.cluster', true) THEN epoch END
        INTO epoch_ FROM log_epoch ORDER BY epoch DESC LIMIT 1;
    IF epoch_ IS NULL THEN
        epoch_ := log_enter_epoch();
    END IF;
    txid_ := pg_current_xact_id();
    IF count_ = 1 THEN  -- by far the most common case
        seq_ := nextval('log_event_number');
        seqs := ARRAY[seq_];
    ELSE
        seqs := ARRAY(SELECT nextval('log_event_number') FROM generate_series(1, count_));
        seq_ := seqs[count_];
    END IF;
    IF after_version = 0 THEN
        INSERT INTO log_stream (stream, version, hash, epoch, txid, seq, first_seq)
        VALUES (stream_, count_, substr(hashes, 32 * count_ - 31, 32), epoch_, txid_, seq_, seqs[1]);
    ELSE
        UPDATE log_stream SET version = after_version + count_, hash = substr(hashes, 32 * count_ - 31, 32),
            epoch = epoch_, txid = txid_, seq = seq_
        WHERE stream = stream_ AND version = after_version AND hash = after_hash AND (epoch, txid) <= (epoch_, txid_);
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF count_ = 1 THEN
        INSERT INTO log_event (epoch, txid, seq, stream, version, type, schema, body, actor, cause, trace, occurred_at,
            recorded_at, hash)
        VALUES (epoch_, txid_, seq_, stream_, after_version + 1, types[1], schemas[1], bodies, actor_, cause_, trace_,
            times[1], recorded_at_, hashes);
    ELSE
        INSERT INTO log_event (epoch, txid, seq, stream, version, type, schema, body, actor, cause, trace, occurred_at,
            recorded_at, hash)
        SELECT epoch_, txid_, new_seq, stream_, after_version + place, new_type, new_schema, new_body, actor_, cause_,
            trace_, new_time, recorded_at_, substr(hashes, 32 * place::integer - 31, 32)
        FROM unnest(seqs, types, schemas, string_to_array(bodies, E'\\n'), times)
            WITH ORDINALITY AS new (new_seq, new_type, new_schema, new_body, new_time, place);
    END IF;
    RETURN ARRAY[epoch_, txid_::text::bigint] || seqs;
END
$$;
"""

# Events of many new streams, each with who caused it. A new stream has no predecessor to compare with; that none of them
# exists is what the primary key of `log_stream` holds. Streams of `old_streams` exist already: they come with the version
# and the hash that the new events are chained to, and one that stands elsewhere fails the statement, so that nothing is
# recorded and statements of the same message that depend on it are not carried out.
EXTEND = """
CREATE FUNCTION log_extend(
    old_streams text[], old_versions integer[], old_hashes bytea[],
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    count_ integer := cardinality(types);
    epoch_ integer;
    txid_ xid8;
    seqs bigint[];
    found_ integer;
BEGIN
    IF '' = ANY (streams) OR '' = ANY (actors) OR '' = ANY (causes) OR '' = ANY (traces) OR 0 >= ANY (versions)
            OR 0 >= ANY (schemas) OR length(hashes) <> 32 * count_ THEN
        RAISE EXCEPTION 'this is no event: a name is empty, a number is not above zero or a hash has not 32 bytes'
            USING ERRCODE = 'check_violation';
    END IF;
    SELECT CASE WHEN system_identifier::text = current_setting('dossier.cluster', true) THEN epoch END
        INTO epoch_ FROM log_epoch ORDER BY epoch DESC LIMIT 1;
    IF epoch_ IS NULL THEN
        epoch_ := log_enter_epoch();
    END IF;
    txid_ := pg_current_xact_id();
    seqs := ARRAY(SELECT nextval('log_event_number') FROM generate_series(1, count_));
    IF cardinality(old_streams) > 0 THEN
        UPDATE log_stream SET version = last.version, hash = substr(hashes, 32 * last.place - 31, 32),
            epoch = epoch_, txid = txid_, seq = seqs[last.place]
        FROM unnest(old_streams, old_versions, old_hashes) AS old (old_stream, old_version, old_hash)
        JOIN (
            SELECT new_stream, max(new_version) AS version, max(place)::integer AS place
            FROM unnest(streams, versions) WITH ORDINALITY AS new (new_stream, new_version, place) GROUP BY new_stream
        ) AS last ON new_stream = old_stream
        WHERE stream = old_stream AND log_stream.version = old_version AND log_stream.hash = old_hash
            AND (epoch, txid) <= (epoch_, txid_);
        GET DIAGNOSTICS found_ = ROW_COUNT;
        IF found_ < cardinality(old_streams) THEN
            RAISE EXCEPTION 'one of the streams stands elsewhere' USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    IF 1 = ANY (versions) THEN
        INSERT INTO log_stream (stream, version, hash, epoch, txid, seq, first_seq)
        SELECT new_stream, version, substr(hashes, 32 * last - 31, 32), epoch_, txid_, seqs[last], seqs[first]
        FROM (
            SELECT new_stream, max(new_version) AS version, max(place)::integer AS last, min(place)::integer AS first
            FROM unnest(streams, versions) WITH ORDINALITY AS new (new_stream, new_version, place)
            WHERE new_stream <> ALL (old_streams) GROUP BY new_stream
        ) AS begun;
    END IF;
    INSERT INTO log_event (epoch, txid, seq, stream, version, type, schema, body, actor, cause, trace, occurred_at,
        recorded_at, hash)
    SELECT epoch_, txid_, new_seq, new_stream, new_version, new_type, new_schema, new_body, new_actor, new_cause,
        new_trace, new_time, recorded_at_, substr(hashes, 32 * place::integer - 31, 32)
    FROM unnest(seqs, streams, versions, types, schemas, string_to_array(bodies, E'\\n'), actors, causes, traces, times)
        WITH ORDINALITY AS new (new_seq, new_stream, new_version, new_type, new_schema, new_body, new_actor, new_cause,
            new_trace, new_time, place);
    RETURN ARRAY[epoch_, txid_::text::bigint] || seqs;
END
$$;
"""

BEGIN = """
CREATE FUNCTION log_begin(
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE sql VOLATILE AS $$
    SELECT log_extend('{}', '{}', '{}', recorded_at_, streams, versions, actors, causes, traces, types, schemas, bodies,
        times, hashes)
$$;
"""

# ENABLE ALWAYS: session_replication_role = replica does not switch it off either.
APPEND_ONLY = """
CREATE FUNCTION log_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the event log is append-only: % of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', HINT = 'Record another event that says what changed.';
END
$$;
CREATE TRIGGER log_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_event
    FOR EACH STATEMENT EXECUTE FUNCTION log_refuse_change();
CREATE TRIGGER log_epoch_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_epoch
    FOR EACH STATEMENT EXECUTE FUNCTION log_refuse_change();
ALTER TABLE log_event ENABLE ALWAYS TRIGGER log_event_append_only;
ALTER TABLE log_epoch ENABLE ALWAYS TRIGGER log_epoch_append_only;
"""

# Parts are made before they are needed; ATTACH PARTITION lets writers go on, unlike CREATE TABLE ... PARTITION OF. A
# trigger of statements is that of the table that the statement names, so each part has its own.
PARTS = """
CREATE FUNCTION log_make_parts(size_ bigint, ahead_ integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made integer := 0;
    reached bigint;
    first_ bigint;
    part text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('log_part', 0));
    SELECT last_value INTO reached FROM log_event_number;
    WHILE (SELECT count(*) FROM log_part WHERE first > reached) < ahead_ LOOP
        SELECT coalesce(max(until), 0) INTO first_ FROM log_part;
        part := 'log_event_p' || first_;
        EXECUTE format('CREATE TABLE %I (LIKE log_event INCLUDING DEFAULTS)', part);
        EXECUTE format('CREATE UNIQUE INDEX %I ON %I (stream, version)', part || '_version', part);
        EXECUTE format('CREATE TRIGGER log_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I'
            ' FOR EACH STATEMENT EXECUTE FUNCTION log_refuse_change()', part);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER log_event_append_only', part);
        EXECUTE format('ALTER TABLE log_event ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
            part, first_, first_ + size_);
        INSERT INTO log_part (first, until) VALUES (first_, first_ + size_);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
"""


def make_first_parts(_: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute("SELECT log_make_parts(%s, 2)", [settings.LOG_PART])


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [
        migrations.RunSQL(TABLES),
        migrations.RunSQL(EPOCHS),
        migrations.RunSQL(APPEND),
        migrations.RunSQL(EXTEND),
        migrations.RunSQL(BEGIN),
        migrations.RunSQL(APPEND_ONLY),
        migrations.RunSQL(PARTS),
        migrations.RunPython(make_first_parts),
    ]
