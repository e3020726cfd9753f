-- The catalog's tables.
--
-- A row with begin_snapshot and end_snapshot is visible at snapshot S when begin <= S and end is
-- null or S < end. Ids are counted up per catalog, under the catalog's advisory lock, so their
-- order is the order of commits. Times are microseconds since 1970-01-01 UTC: exact, and compared
-- without a time zone. Tables that every commit writes have no foreign keys: the writer holds the
-- lock and has just read the rows that a key would look up again.

CREATE FUNCTION hog_now_us() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

CREATE TABLE hog_catalog (
    catalog_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    data_path text NOT NULL,
    last_snapshot_id bigint NOT NULL DEFAULT 0,
    last_snapshot_time_us bigint NOT NULL,
    schema_version bigint NOT NULL DEFAULT 0,
    next_table_id bigint NOT NULL DEFAULT 1,
    next_file_id bigint NOT NULL DEFAULT 1,
    next_namespace_id bigint NOT NULL DEFAULT 1,
    next_view_id bigint NOT NULL DEFAULT 1,
    snapshot_retention_seconds bigint CHECK (snapshot_retention_seconds > 0),
    consumer_floor boolean NOT NULL DEFAULT true,
    earliest_snapshot_id bigint NOT NULL DEFAULT 0,
    earliest_snapshot_time_us bigint,
    created_us bigint NOT NULL DEFAULT hog_now_us()
) WITH (fillfactor = 25); -- updated by every commit, in place

-- token: the random number of the attempt that made the snapshot. After a connection was lost at
-- COMMIT it tells whether that attempt is in.
CREATE TABLE hog_snapshot (
    catalog_id bigint NOT NULL,
    snapshot_id bigint NOT NULL,
    snapshot_time_us bigint NOT NULL,
    schema_version bigint NOT NULL,
    author text,
    commit_message text,
    token bigint NOT NULL,
    PRIMARY KEY (catalog_id, snapshot_id)
);
CREATE INDEX hog_snapshot_time ON hog_snapshot (catalog_id, snapshot_time_us);

-- object_id spans three id spaces (namespaces, tables, views): filter by kind.
CREATE TABLE hog_snapshot_change (
    catalog_id bigint NOT NULL,
    snapshot_id bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN (
        'namespace_created', 'namespace_dropped', 'table_created', 'table_dropped',
        'table_altered', 'table_inserted_into', 'table_deleted_from', 'table_compacted',
        'view_created', 'view_dropped')),
    object_id bigint NOT NULL
);
CREATE INDEX hog_snapshot_change_conflict
    ON hog_snapshot_change (catalog_id, object_id, kind, snapshot_id);
CREATE INDEX hog_snapshot_change_by_snapshot ON hog_snapshot_change (catalog_id, snapshot_id);

CREATE TABLE hog_namespace (
    catalog_id bigint NOT NULL REFERENCES hog_catalog ON DELETE CASCADE,
    namespace_id bigint NOT NULL,
    name text NOT NULL,
    created_snapshot bigint NOT NULL,
    dropped_snapshot bigint,
    PRIMARY KEY (catalog_id, namespace_id)
);
CREATE UNIQUE INDEX hog_namespace_live_name
    ON hog_namespace (catalog_id, name) WHERE dropped_snapshot IS NULL;

CREATE TABLE hog_table (
    catalog_id bigint NOT NULL REFERENCES hog_catalog ON DELETE CASCADE,
    table_id bigint NOT NULL,
    table_uuid uuid NOT NULL,
    created_snapshot bigint NOT NULL,
    dropped_snapshot bigint,
    next_field_id bigint NOT NULL,
    replaced_table_id bigint CHECK (replaced_table_id <> table_id),
    PRIMARY KEY (catalog_id, table_id),
    UNIQUE (catalog_id, table_uuid)
);
CREATE INDEX hog_table_dropped
    ON hog_table (catalog_id, dropped_snapshot) WHERE dropped_snapshot IS NOT NULL;
CREATE INDEX hog_table_replacement_lineage
    ON hog_table (catalog_id, replaced_table_id) WHERE replaced_table_id IS NOT NULL;

CREATE TABLE hog_table_version (
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    begin_snapshot bigint NOT NULL,
    end_snapshot bigint CHECK (end_snapshot > begin_snapshot),
    namespace_id bigint NOT NULL,
    name text NOT NULL,
    comment text,
    properties json NOT NULL DEFAULT '{}',
    PRIMARY KEY (catalog_id, table_id, begin_snapshot),
    FOREIGN KEY (catalog_id, table_id) REFERENCES hog_table ON DELETE CASCADE
);
CREATE UNIQUE INDEX hog_table_version_live_name
    ON hog_table_version (catalog_id, namespace_id, name) WHERE end_snapshot IS NULL;
CREATE INDEX hog_table_version_name ON hog_table_version (catalog_id, namespace_id, name);

CREATE TABLE hog_column (
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    field_id bigint NOT NULL,
    begin_snapshot bigint NOT NULL,
    end_snapshot bigint CHECK (end_snapshot > begin_snapshot),
    parent_field_id bigint CHECK (parent_field_id < field_id),
    ordinal bigint NOT NULL CHECK (ordinal >= 0),
    name text NOT NULL,
    col_type text NOT NULL,
    type_params json,
    nullable boolean NOT NULL,
    comment text,
    PRIMARY KEY (catalog_id, table_id, field_id, begin_snapshot),
    FOREIGN KEY (catalog_id, table_id) REFERENCES hog_table ON DELETE CASCADE
);
CREATE UNIQUE INDEX hog_column_live_ordinal
    ON hog_column (catalog_id, table_id, coalesce(parent_field_id, 0), ordinal)
    WHERE end_snapshot IS NULL;

-- next_row_id only grows: row ids are never given twice. The live_* sums are those of the table's
-- live files (gross of deletion vectors); whoever begins or ends a file row keeps them right.
CREATE TABLE hog_table_stats (
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    next_row_id bigint NOT NULL DEFAULT 0 CHECK (next_row_id >= 0),
    live_rows bigint NOT NULL DEFAULT 0 CHECK (live_rows >= 0),
    live_files bigint NOT NULL DEFAULT 0 CHECK (live_files >= 0),
    live_bytes bigint NOT NULL DEFAULT 0 CHECK (live_bytes >= 0),
    PRIMARY KEY (catalog_id, table_id),
    FOREIGN KEY (catalog_id, table_id) REFERENCES hog_table ON DELETE CASCADE
) WITH (fillfactor = 25);

CREATE TABLE hog_partition_spec (
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    spec_id bigint NOT NULL,
    begin_snapshot bigint NOT NULL,
    end_snapshot bigint CHECK (end_snapshot > begin_snapshot),
    PRIMARY KEY (catalog_id, table_id, spec_id),
    FOREIGN KEY (catalog_id, table_id) REFERENCES hog_table ON DELETE CASCADE
);
CREATE TABLE hog_partition_field (
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    spec_id bigint NOT NULL,
    key_index bigint NOT NULL,
    source_field_id bigint NOT NULL,
    transform text NOT NULL
        CHECK (transform IN ('identity', 'bucket', 'year', 'month', 'day', 'hour')),
    transform_param bigint CHECK ((transform_param IS NOT NULL) = (transform = 'bucket')),
    PRIMARY KEY (catalog_id, table_id, spec_id, key_index),
    FOREIGN KEY (catalog_id, table_id, spec_id) REFERENCES hog_partition_spec ON DELETE CASCADE
);

CREATE TABLE hog_sort_spec (
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    sort_id bigint NOT NULL,
    begin_snapshot bigint NOT NULL,
    end_snapshot bigint CHECK (end_snapshot > begin_snapshot),
    PRIMARY KEY (catalog_id, table_id, sort_id),
    FOREIGN KEY (catalog_id, table_id) REFERENCES hog_table ON DELETE CASCADE
);
CREATE TABLE hog_sort_field (
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    sort_id bigint NOT NULL,
    key_index bigint NOT NULL,
    source_field_id bigint NOT NULL,
    direction text NOT NULL CHECK (direction IN ('asc', 'desc')),
    null_order text NOT NULL CHECK (null_order IN ('nulls_first', 'nulls_last')),
    PRIMARY KEY (catalog_id, table_id, sort_id, key_index),
    FOREIGN KEY (catalog_id, table_id, sort_id) REFERENCES hog_sort_spec ON DELETE CASCADE
);

-- Row ids of a file: [row_id_start, row_id_start + record_count), unless explicit_row_ids.
-- partition_values: already transformed, one per key of spec_id, opaque; null where unpartitioned.
CREATE TABLE hog_data_file (
    catalog_id bigint NOT NULL,
    data_file_id bigint NOT NULL,
    table_id bigint NOT NULL,
    begin_snapshot bigint NOT NULL,
    end_snapshot bigint CHECK (end_snapshot > begin_snapshot),
    path text NOT NULL,
    record_count bigint NOT NULL CHECK (record_count >= 0),
    file_size_bytes bigint NOT NULL CHECK (file_size_bytes >= 0),
    footer_size bigint CHECK (footer_size BETWEEN 0 AND file_size_bytes - 8),
    row_id_start bigint NOT NULL,
    stats_state text NOT NULL CHECK (stats_state IN ('provided', 'pending', 'failed')),
    spec_id bigint,
    partition_values text[],
    explicit_row_ids boolean NOT NULL DEFAULT false,
    missing_field_ids boolean NOT NULL DEFAULT false,
    compacted boolean NOT NULL DEFAULT false, -- made by compaction: not data for the changefeed
    split_offsets bigint[],
    PRIMARY KEY (catalog_id, data_file_id)
);
CREATE INDEX hog_data_file_table ON hog_data_file (catalog_id, table_id, begin_snapshot);
CREATE INDEX hog_data_file_path ON hog_data_file (catalog_id, path);
CREATE INDEX hog_data_file_ended
    ON hog_data_file (catalog_id, end_snapshot) WHERE end_snapshot IS NOT NULL;
CREATE INDEX hog_data_file_pending
    ON hog_data_file (catalog_id, data_file_id) WHERE stats_state = 'pending' AND end_snapshot IS NULL;
CREATE INDEX hog_data_file_attention
    ON hog_data_file (catalog_id, table_id) WHERE missing_field_ids OR stats_state = 'failed';

-- All column statistics of a file as one JSON array of rows
--   [field_id, value_count, null_count, nan_count, size_bytes, lower_bound, upper_bound]
-- ordered by field_id, bounds in base64, null where unknown: written once, read whole.
CREATE TABLE hog_file_stats (
    catalog_id bigint NOT NULL,
    data_file_id bigint NOT NULL,
    stats text NOT NULL,
    PRIMARY KEY (catalog_id, data_file_id)
);

CREATE TABLE hog_delete_file (
    catalog_id bigint NOT NULL,
    delete_file_id bigint NOT NULL,
    table_id bigint NOT NULL,
    data_file_id bigint NOT NULL,
    begin_snapshot bigint NOT NULL,
    end_snapshot bigint CHECK (end_snapshot > begin_snapshot),
    path text NOT NULL,
    delete_count bigint NOT NULL CHECK (delete_count > 0),
    file_size_bytes bigint NOT NULL CHECK (file_size_bytes >= 0),
    PRIMARY KEY (catalog_id, delete_file_id)
);
CREATE UNIQUE INDEX hog_delete_file_one_live
    ON hog_delete_file (catalog_id, data_file_id) WHERE end_snapshot IS NULL;
CREATE INDEX hog_delete_file_data ON hog_delete_file (catalog_id, data_file_id);
CREATE INDEX hog_delete_file_table ON hog_delete_file (catalog_id, table_id, begin_snapshot);
CREATE INDEX hog_delete_file_path ON hog_delete_file (catalog_id, path);
CREATE INDEX hog_delete_file_ended
    ON hog_delete_file (catalog_id, end_snapshot) WHERE end_snapshot IS NOT NULL;

CREATE TABLE hog_view (
    catalog_id bigint NOT NULL REFERENCES hog_catalog ON DELETE CASCADE,
    view_id bigint NOT NULL,
    view_uuid uuid NOT NULL,
    namespace_id bigint NOT NULL,
    name text NOT NULL,
    dialect text NOT NULL,
    sql text NOT NULL,
    begin_snapshot bigint NOT NULL,
    end_snapshot bigint CHECK (end_snapshot > begin_snapshot),
    PRIMARY KEY (catalog_id, view_id)
);
CREATE UNIQUE INDEX hog_view_live_name
    ON hog_view (catalog_id, namespace_id, name) WHERE end_snapshot IS NULL;

CREATE TABLE hog_consumer_offset (
    catalog_id bigint NOT NULL REFERENCES hog_catalog ON DELETE CASCADE,
    consumer_id text NOT NULL CHECK (length(consumer_id) BETWEEN 1 AND 128),
    table_uuid uuid NOT NULL,
    committed_snapshot bigint NOT NULL,
    updated_us bigint NOT NULL,
    PRIMARY KEY (catalog_id, consumer_id, table_uuid)
);
CREATE INDEX hog_consumer_offset_floor ON hog_consumer_offset (catalog_id, committed_snapshot);

-- fingerprint: a version byte and the SHA-256 of the request in canonical form.
CREATE TABLE hog_commit_receipt (
    catalog_id bigint NOT NULL,
    idempotency_key uuid NOT NULL,
    fingerprint bytea NOT NULL,
    snapshot_id bigint NOT NULL,
    schema_version bigint NOT NULL,
    created_us bigint NOT NULL,
    PRIMARY KEY (catalog_id, idempotency_key)
);
CREATE INDEX hog_commit_receipt_age ON hog_commit_receipt (catalog_id, created_us);

CREATE TABLE hog_file_removal (
    removal_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    catalog_id bigint NOT NULL,
    path text NOT NULL,
    file_kind text NOT NULL CHECK (file_kind IN ('data', 'delete')),
    reason text NOT NULL CHECK (reason IN
        ('snapshot_expiry', 'table_drop_gc', 'compaction_staging', 'trino_upload')),
    scheduled_us bigint NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    last_attempt_us bigint,
    drained_us bigint,
    drained_outcome text CHECK (drained_outcome IN ('deleted', 'absent', 'registered')),
    claimed_us bigint,
    CHECK ((drained_us IS NULL) = (drained_outcome IS NULL))
);
CREATE INDEX hog_file_removal_queue
    ON hog_file_removal (catalog_id, removal_id) WHERE drained_us IS NULL;
CREATE INDEX hog_file_removal_path
    ON hog_file_removal (catalog_id, path) WHERE drained_us IS NULL;
CREATE INDEX hog_file_removal_drained
    ON hog_file_removal (drained_us) WHERE drained_us IS NOT NULL;

CREATE TABLE hog_upload (
    catalog_id bigint NOT NULL,
    upload_id uuid NOT NULL,
    owner uuid NOT NULL,
    prefix text NOT NULL,
    path text NOT NULL,
    file_kind text NOT NULL CHECK (file_kind IN ('data', 'delete')),
    state text NOT NULL CHECK (state IN ('active', 'registered', 'abandoned')),
    expires_us bigint NOT NULL,
    scheduled_us bigint,
    PRIMARY KEY (catalog_id, upload_id),
    UNIQUE (catalog_id, path)
);
CREATE INDEX hog_upload_owner ON hog_upload (catalog_id, owner);

CREATE TABLE hog_table_creation (
    catalog_id bigint NOT NULL REFERENCES hog_catalog ON DELETE CASCADE,
    operation_id uuid NOT NULL,
    namespace_id bigint NOT NULL,
    definition text NOT NULL, -- canonical JSON of the request
    table_uuid uuid NOT NULL,
    write_path text NOT NULL,
    state text NOT NULL CHECK (state IN ('prepared', 'committed', 'rejected', 'aborted')),
    expires_us bigint NOT NULL,
    files text, -- canonical JSON of the first publish
    snapshot_id bigint,
    schema_version bigint,
    reason text,
    PRIMARY KEY (catalog_id, operation_id),
    CHECK ((snapshot_id IS NOT NULL) = (state = 'committed'))
);

CREATE TABLE hog_maintenance_run (
    run_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    catalog_id bigint NOT NULL,
    task text NOT NULL,
    run_trigger text NOT NULL CHECK (run_trigger IN ('loop', 'manual')),
    started_us bigint NOT NULL,
    finished_us bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('ok', 'failed')),
    error text,
    result json
);
CREATE INDEX hog_maintenance_run_catalog ON hog_maintenance_run (catalog_id, task, run_id);

-- A group of files that a compaction works on, so that no second one does.
CREATE TABLE hog_compaction_claim (
    claim_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    catalog_id bigint NOT NULL,
    table_id bigint NOT NULL,
    data_file_ids bigint[] NOT NULL,
    expires_us bigint NOT NULL
);
CREATE INDEX hog_compaction_claim_table ON hog_compaction_claim (catalog_id, table_id);
