-- The schema that the migrations make, for reading; a test keeps it true. Not run.

CREATE SCHEMA surestep;

CREATE TABLE surestep.audit_chains (
    chain text NOT NULL,
    salt bytea,
    length bigint DEFAULT 0 NOT NULL,
    head bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
    sealed boolean DEFAULT false NOT NULL,
    CONSTRAINT audit_chains_chain_check CHECK ((chain !~ '\n'::text))
)
WITH (fillfactor='70');

CREATE FUNCTION surestep.audit_append(held surestep.audit_chains, kind text, subject text, content bytea, told jsonb DEFAULT NULL::jsonb) RETURNS surestep.audit_chains
    LANGUAGE plpgsql
    AS $$
DECLARE
    moment timestamptz := clock_timestamp();
BEGIN
    held.length := held.length + 1;
    held.head := sha256(held.head || convert_to(
        held.chain || E'\n' || held.length || E'\n' || (extract(epoch FROM moment) * 1000000)::bigint || E'\n' || kind
        || E'\n' || subject, 'UTF8'
    ) || content);
    INSERT INTO surestep.audit (chain, seq, at, kind, subject, content, details, hash)
    VALUES (held.chain, held.length, moment, kind, subject, content, told, held.head);
    RETURN held;
END $$;

CREATE FUNCTION surestep.audit_hold(of_chain text) RETURNS surestep.audit_chains
    LANGUAGE plpgsql
    AS $$
DECLARE
    held surestep.audit_chains;
BEGIN
    SELECT * INTO held FROM surestep.audit_chains WHERE chain = of_chain FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        INSERT INTO surestep.audit_chains (chain, salt)
        VALUES (of_chain, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())))
        ON CONFLICT (chain) DO NOTHING;
        SELECT * INTO held FROM surestep.audit_chains WHERE chain = of_chain FOR NO KEY UPDATE;
    END IF;
    held.salt := coalesce(held.salt, '');
    RETURN held;
END $$;

CREATE FUNCTION surestep.audit_journal() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog'
    AS $$
DECLARE
    held    surestep.audit_chains;
    one     record;
    moment  timestamptz;
    stamp   text;
    what    bytea;
BEGIN
    FOR one IN SELECT * FROM added ORDER BY run_id, fence, n LOOP
        IF held.chain IS DISTINCT FROM one.run_id THEN
            IF held.chain IS NOT NULL THEN
                PERFORM surestep.audit_let_go(held);
            END IF;
            held := surestep.audit_hold(one.run_id);
            moment := clock_timestamp();
            stamp := E'\n' || (extract(epoch FROM moment) * 1000000)::bigint || E'\njournal.';
        END IF;
        what := sha256(held.salt || convert_to(jsonb_build_array(
            one.run_id, one.fence, one.n, one.kind, one.step_id, one.attempt,
            (extract(epoch FROM one.at) * 1000000)::bigint
        )::text || one.body::text, 'UTF8'));
        held.length := held.length + 1;
        held.head := sha256(held.head || convert_to(
            held.chain || E'\n' || held.length || stamp || one.kind || E'\n' || one.fence || '/' || one.n, 'UTF8'
        ) || what);
        INSERT INTO surestep.audit (chain, seq, at, kind, subject, content, hash)
        VALUES (held.chain, held.length, moment, 'journal.' || one.kind, one.fence || '/' || one.n, what, held.head);
    END LOOP;
    IF held.chain IS NOT NULL THEN
        UPDATE surestep.audit_chains SET length = held.length, head = held.head, sealed = false
        WHERE chain = held.chain;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION surestep.audit_let_go(held surestep.audit_chains) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE surestep.audit_chains SET length = held.length, head = held.head, sealed = false WHERE chain = held.chain;
END $$;

CREATE FUNCTION surestep.audit_note(to_chain text, kind text, subject text, told jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog'
    AS $$
DECLARE
    held surestep.audit_chains := surestep.audit_hold(to_chain);
BEGIN
    PERFORM surestep.audit_let_go(surestep.audit_append(
        held, kind, subject, sha256(held.salt || convert_to(told::text, 'UTF8')), told
    ));
END $$;

CREATE FUNCTION surestep.audit_rows() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog'
    SET "TimeZone" TO 'UTC'
    AS $$
DECLARE
    verb     text := CASE TG_OP WHEN 'INSERT' THEN 'added' WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END;
    held     surestep.audit_chains;
    one      record;
    content  text;
BEGIN
    FOR one IN EXECUTE format(
        'SELECT %s AS chain, to_jsonb(r) AS row FROM given r ORDER BY 1, to_jsonb(r) -> %L', TG_ARGV[1], TG_ARGV[2]
    ) LOOP
        held := surestep.audit_hold(one.chain);
        IF TG_OP <> 'DELETE' AND TG_ARGV[4] <> '' THEN
            verb := one.row ->> TG_ARGV[4];
        END IF;
        SELECT jsonb_agg(one.row -> c.name ORDER BY c.place)::text INTO content
        FROM unnest(string_to_array(TG_ARGV[3], ',')) WITH ORDINALITY AS c (name, place);
        PERFORM surestep.audit_let_go(surestep.audit_append(
            held, TG_ARGV[0] || '.' || verb,
            encode(substr(sha256(held.salt || convert_to(one.row ->> TG_ARGV[2], 'UTF8')), 1, 16), 'hex'),
            sha256(held.salt || convert_to(content, 'UTF8'))
        ));
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION surestep.audit_stays() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% of %: what was audited stays on record', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION surestep.audit_table(which regclass, what text, chain text, key text, columns text, verb text DEFAULT ''::text, deletions boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    calls text := format(
        'FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows(%L, %L, %L, %L, %L)', what, chain, key, columns, verb
    );
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE TRIGGER audited_added AFTER INSERT ON %s REFERENCING NEW TABLE AS given %s', which, calls
    );
    EXECUTE format(
        'CREATE OR REPLACE TRIGGER audited_changed AFTER UPDATE ON %s REFERENCING NEW TABLE AS given %s', which, calls
    );
    IF deletions THEN
        EXECUTE format(
            'CREATE OR REPLACE TRIGGER audited_deleted AFTER DELETE ON %s REFERENCING OLD TABLE AS given %s',
            which, calls
        );
    END IF;
END $$;

CREATE FUNCTION surestep.heed_tombstones() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    request text := encode(sha256(convert_to(NEW.request_id, 'UTF8')), 'hex');
BEGIN
    PERFORM pg_advisory_xact_lock_shared(728311, hashtext(NEW.tenant || request));
    PERFORM pg_advisory_xact_lock_shared(728312, hashtext(NEW.thread_id));
    IF EXISTS (
        SELECT FROM surestep.tombstones t
        WHERE t.tenant = NEW.tenant AND t.request_sha256 = request
            AND (t.archived_at IS NOT NULL OR t.erased_at IS NOT NULL)
    ) THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION surestep.keep_answer() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'approval % is % and stays so', OLD.approval_id, OLD.status
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION surestep.keep_decision() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' AND NOT EXISTS (SELECT FROM surestep.approvals WHERE approval_id = OLD.approval_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% of %: what people have decided stays on record', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION surestep.note_tool_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    was     jsonb := '{}';
    becomes jsonb := '{}';
    who     text := 'database user ' || session_user;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        was := OLD.settings;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        becomes := NEW.settings;
        -- Whoever writes past Surestep leaves the name and the time of the change before theirs.
        IF TG_OP = 'INSERT' OR (NEW.updated_at, NEW.updated_by) IS DISTINCT FROM (OLD.updated_at, OLD.updated_by) THEN
            who := NEW.updated_by;
        END IF;
    END IF;
    IF was IS DISTINCT FROM becomes THEN
        INSERT INTO surestep.tool_changes (tool, changed_by, before, after)
        VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.tool ELSE NEW.tool END, who, was, becomes);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION surestep.open_run(thread text) RETURNS text
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(728313, hashtext(thread));
    RETURN (
        SELECT run_id FROM surestep.runs
        WHERE thread_id = thread AND status IN ('running', 'paused', 'limited') LIMIT 1
    );
END
$$;

CREATE FUNCTION surestep.refuse_rewriting() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% of %: what was changed about tools stays on record', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION surestep.run_in_the_way(thread text, of_tenant text) RETURNS text
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(728313, hashtext(thread));
    RETURN coalesce(
        (
            SELECT run_id FROM surestep.runs
            WHERE thread_id = thread
                AND (status IN ('running', 'paused', 'limited') OR tenant <> of_tenant)
            LIMIT 1
        ),
        (
            SELECT run_id FROM surestep.tombstones
            WHERE thread_sha256 = encode(sha256(convert_to(thread, 'UTF8')), 'hex') AND tenant <> of_tenant
            LIMIT 1
        )
    );
END
$$;

CREATE FUNCTION surestep.tell_of_approval() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO surestep.outbox (kind, run_id, approval_id, code)
    VALUES (
        CASE
            WHEN NEW.status = 'expired' THEN 'approval_expired'
            WHEN TG_OP = 'UPDATE' AND NEW.status = OLD.status THEN 'approval_escalated'
            WHEN NEW.request ->> 'kind' = 'unknown_outcome' THEN 'outcome_unknown'
            ELSE 'approval_requested'
        END,
        NEW.run_id, NEW.approval_id,
        CASE
            WHEN NEW.status = 'expired' THEN 'APPROVAL_EXPIRED'
            WHEN NEW.request ->> 'kind' = 'unknown_outcome' THEN 'UNKNOWN_OUTCOME'
        END
    );
    RETURN NULL;
END $$;

CREATE FUNCTION surestep.tell_of_run() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO surestep.outbox (kind, run_id, code, message)
    VALUES (
        'run_' || NEW.status, NEW.run_id, NEW.summary -> 'failure' ->> 'code', NEW.summary -> 'failure' ->> 'message'
    );
    RETURN NULL;
END $$;

CREATE TABLE surestep.approvals (
    approval_id text NOT NULL,
    run_id text NOT NULL,
    thread_id text NOT NULL,
    step_id text NOT NULL,
    args_sha256 text NOT NULL,
    request jsonb NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    decision jsonb,
    decided_by text,
    decided_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    voters text[] DEFAULT '{}'::text[] NOT NULL,
    asking integer DEFAULT 1 NOT NULL,
    escalated_at timestamp with time zone,
    CONSTRAINT approvals_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text, 'edited'::text, 'answered'::text, 'expired'::text, 'withdrawn'::text])))
);

CREATE TABLE surestep.decisions (
    decision_id bigint NOT NULL,
    approval_id text NOT NULL,
    asking integer NOT NULL,
    decided_by text NOT NULL,
    roles text[] NOT NULL,
    tenant text NOT NULL,
    via text NOT NULL,
    args_sha256 text NOT NULL,
    decision jsonb NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.runs (
    run_id text NOT NULL,
    thread_id text NOT NULL,
    tenant text DEFAULT ''::text NOT NULL,
    request_id text NOT NULL,
    goal text NOT NULL,
    input jsonb NOT NULL,
    input_sha256 text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    summary jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    forked_from text,
    CONSTRAINT runs_status_check CHECK ((status = ANY (ARRAY['running'::text, 'paused'::text, 'done'::text, 'failed'::text, 'cancelled'::text, 'limited'::text])))
);

CREATE VIEW surestep.answered_approvals AS
 SELECT a.approval_id,
    a.run_id,
    a.thread_id,
    r.tenant,
    a.request,
    a.created_at,
        CASE
            WHEN ((a.status = 'pending'::text) AND (a.expires_at <= clock_timestamp())) THEN 'expired'::text
            ELSE a.status
        END AS status,
    a.decision,
    a.decided_by,
    a.decided_at,
    COALESCE(v.votes, '[]'::jsonb) AS votes
   FROM ((surestep.approvals a
     JOIN surestep.runs r USING (run_id))
     LEFT JOIN LATERAL ( SELECT jsonb_agg(jsonb_build_object('by', jsonb_build_object('name', d.decided_by, 'roles', to_jsonb(d.roles), 'tenant', d.tenant), 'decision', d.decision, 'via', d.via, 'at', d.decided_at) ORDER BY d.decision_id) AS votes
           FROM surestep.decisions d
          WHERE ((d.approval_id = a.approval_id) AND (d.asking = a.asking))) v ON (true));

CREATE TABLE surestep.artifacts (
    run_id text NOT NULL,
    output_ref text NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    media_type text NOT NULL,
    body bytea,
    location text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT artifacts_check CHECK (((body IS NULL) <> (location IS NULL)))
)
WITH (toast_tuple_target='4080');

CREATE TABLE surestep.audit (
    chain text NOT NULL,
    seq bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    content bytea NOT NULL,
    details jsonb,
    hash bytea NOT NULL,
    CONSTRAINT audit_kind_check CHECK ((kind !~ '\n'::text))
);

CREATE TABLE surestep.audit_sealed (
    seal bigint NOT NULL,
    chain text NOT NULL,
    length bigint NOT NULL,
    head bytea NOT NULL
);

CREATE TABLE surestep.audit_seals (
    seal bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    hash bytea NOT NULL,
    key_id text,
    mac bytea
);

ALTER TABLE surestep.decisions ALTER COLUMN decision_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME surestep.decisions_decision_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE surestep.failed_calls (
    key text NOT NULL,
    tool text NOT NULL,
    failed_at timestamp with time zone[] NOT NULL,
    code text NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE surestep.instructions (
    run_id text NOT NULL,
    instruction_id text NOT NULL,
    message text NOT NULL,
    said_by jsonb NOT NULL,
    sent_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    taken_at timestamp with time zone
);

CREATE TABLE surestep.journal (
    run_id text NOT NULL,
    fence bigint NOT NULL,
    n bigint NOT NULL,
    kind text NOT NULL,
    step_id text,
    attempt integer DEFAULT 0 NOT NULL,
    body jsonb NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.leases (
    run_id text NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    owner text,
    backend_pid integer,
    backend_start timestamp with time zone,
    expires_at timestamp with time zone,
    cancel_requested boolean DEFAULT false NOT NULL,
    worker text
);

CREATE TABLE surestep.loose_files (
    location text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.migrations (
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.outbox (
    event_id text DEFAULT (gen_random_uuid())::text NOT NULL,
    kind text NOT NULL,
    run_id text NOT NULL,
    approval_id text,
    code text,
    message text,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_error text,
    ended text,
    ended_at timestamp with time zone,
    CONSTRAINT outbox_ended_check CHECK ((ended = ANY (ARRAY['delivered'::text, 'outdated'::text, 'given_up'::text]))),
    CONSTRAINT outbox_kind_check CHECK ((kind = ANY (ARRAY['approval_requested'::text, 'approval_escalated'::text, 'approval_expired'::text, 'outcome_unknown'::text, 'run_failed'::text, 'run_limited'::text, 'run_stuck'::text])))
);

CREATE TABLE surestep.resumptions (
    run_id text NOT NULL,
    attempts integer NOT NULL,
    next_at timestamp with time zone NOT NULL,
    last_error text
);

CREATE TABLE surestep.secrets (
    run_id text NOT NULL,
    placeholder text NOT NULL,
    sealed bytea NOT NULL,
    origin text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.shadow_counts (
    tool text NOT NULL,
    candidate text NOT NULL,
    edition text NOT NULL,
    agreed bigint NOT NULL,
    differed bigint NOT NULL,
    failed bigint NOT NULL,
    in_a_row bigint NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.shadow_differences (
    difference_id bigint NOT NULL,
    tool text NOT NULL,
    candidate text NOT NULL,
    noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    args_sha256 text NOT NULL,
    places jsonb NOT NULL
);

ALTER TABLE surestep.shadow_differences ALTER COLUMN difference_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME surestep.shadow_differences_difference_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE surestep.template_standing (
    template text NOT NULL,
    sha256 text NOT NULL,
    used bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    recent boolean[] NOT NULL,
    last_failure text,
    first_used_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_used_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    set_aside_at timestamp with time zone
);

CREATE TABLE surestep.template_uses (
    run_id text NOT NULL,
    template text NOT NULL,
    sha256 text NOT NULL,
    succeeded boolean,
    code text,
    counted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.tombstones (
    run_id text NOT NULL,
    tenant text NOT NULL,
    request_sha256 text NOT NULL,
    thread_sha256 text NOT NULL,
    request_id text,
    thread_id text,
    input_sha256 text,
    status text NOT NULL,
    effects jsonb DEFAULT '{}'::jsonb NOT NULL,
    place text,
    folder text,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    archived_at timestamp with time zone,
    erased_at timestamp with time zone,
    forked_from text
);

CREATE TABLE surestep.tool_breakers (
    tool text NOT NULL,
    state jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE surestep.tool_cache (
    key text NOT NULL,
    tool text NOT NULL,
    value jsonb NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    run_id text
);

CREATE TABLE surestep.tool_changes (
    change_id bigint NOT NULL,
    tool text NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    changed_by text NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL
);

ALTER TABLE surestep.tool_changes ALTER COLUMN change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME surestep.tool_changes_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE surestep.tool_settings (
    tool text NOT NULL,
    settings jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_by text NOT NULL
);

CREATE TABLE surestep.tool_slots (
    slot text NOT NULL,
    tool text NOT NULL,
    worker text NOT NULL,
    taken boolean NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE surestep.tool_starts (
    tool text NOT NULL,
    slot text NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE TABLE surestep.toolkit_schemas (
    toolkit text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY surestep.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (approval_id);

ALTER TABLE ONLY surestep.artifacts
    ADD CONSTRAINT artifacts_pkey PRIMARY KEY (run_id, output_ref);

ALTER TABLE ONLY surestep.audit_chains
    ADD CONSTRAINT audit_chains_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY surestep.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (chain, seq);

ALTER TABLE ONLY surestep.audit_sealed
    ADD CONSTRAINT audit_sealed_pkey PRIMARY KEY (seal, chain);

ALTER TABLE ONLY surestep.audit_seals
    ADD CONSTRAINT audit_seals_pkey PRIMARY KEY (seal);

ALTER TABLE ONLY surestep.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (decision_id);

ALTER TABLE ONLY surestep.failed_calls
    ADD CONSTRAINT failed_calls_pkey PRIMARY KEY (key);

ALTER TABLE ONLY surestep.instructions
    ADD CONSTRAINT instructions_pkey PRIMARY KEY (run_id, instruction_id);

ALTER TABLE ONLY surestep.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (run_id, fence, n);

ALTER TABLE ONLY surestep.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY surestep.loose_files
    ADD CONSTRAINT loose_files_pkey PRIMARY KEY (location);

ALTER TABLE ONLY surestep.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY surestep.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY surestep.resumptions
    ADD CONSTRAINT resumptions_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY surestep.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY surestep.runs
    ADD CONSTRAINT runs_tenant_request_id_key UNIQUE (tenant, request_id);

ALTER TABLE ONLY surestep.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (run_id, placeholder);

ALTER TABLE ONLY surestep.shadow_counts
    ADD CONSTRAINT shadow_counts_pkey PRIMARY KEY (tool, candidate, edition);

ALTER TABLE ONLY surestep.shadow_differences
    ADD CONSTRAINT shadow_differences_pkey PRIMARY KEY (difference_id);

ALTER TABLE ONLY surestep.template_standing
    ADD CONSTRAINT template_standing_pkey PRIMARY KEY (template, sha256);

ALTER TABLE ONLY surestep.template_uses
    ADD CONSTRAINT template_uses_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY surestep.tombstones
    ADD CONSTRAINT tombstones_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY surestep.tombstones
    ADD CONSTRAINT tombstones_tenant_request_sha256_key UNIQUE (tenant, request_sha256);

ALTER TABLE ONLY surestep.tool_breakers
    ADD CONSTRAINT tool_breakers_pkey PRIMARY KEY (tool);

ALTER TABLE ONLY surestep.tool_cache
    ADD CONSTRAINT tool_cache_pkey PRIMARY KEY (key);

ALTER TABLE ONLY surestep.tool_changes
    ADD CONSTRAINT tool_changes_pkey PRIMARY KEY (change_id);

ALTER TABLE ONLY surestep.tool_settings
    ADD CONSTRAINT tool_settings_pkey PRIMARY KEY (tool);

ALTER TABLE ONLY surestep.tool_slots
    ADD CONSTRAINT tool_slots_pkey PRIMARY KEY (slot);

ALTER TABLE ONLY surestep.tool_starts
    ADD CONSTRAINT tool_starts_pkey PRIMARY KEY (tool, at, slot);

ALTER TABLE ONLY surestep.toolkit_schemas
    ADD CONSTRAINT toolkit_schemas_pkey PRIMARY KEY (toolkit, sha256);

CREATE INDEX approvals_by_expiry ON surestep.approvals USING btree (expires_at) WHERE (status = 'pending'::text);

CREATE INDEX approvals_by_run ON surestep.approvals USING btree (run_id);

CREATE INDEX approvals_pending ON surestep.approvals USING btree (thread_id) WHERE (status = 'pending'::text);

CREATE INDEX approvals_to_escalate ON surestep.approvals USING btree (approval_id) WHERE ((status = 'pending'::text) AND (escalated_at IS NULL) AND ((request -> 'escalates_at'::text) IS NOT NULL));

CREATE INDEX artifacts_by_location ON surestep.artifacts USING btree (location) WHERE (location IS NOT NULL);

CREATE INDEX audit_chains_to_seal ON surestep.audit_chains USING btree (chain) WHERE (NOT sealed);

CREATE INDEX audit_sealed_by_chain ON surestep.audit_sealed USING btree (chain, seal);

CREATE INDEX decisions_by_approval ON surestep.decisions USING btree (approval_id, asking);

CREATE INDEX failed_calls_by_change ON surestep.failed_calls USING btree (changed_at);

CREATE INDEX failed_calls_by_expiry ON surestep.failed_calls USING btree (expires_at);

CREATE INDEX journal_of_plans ON surestep.journal USING btree (kind, at) WHERE (kind = ANY (ARRAY['draft'::text, 'older_form'::text]));

CREATE INDEX outbox_by_run ON surestep.outbox USING btree (run_id);

CREATE INDEX outbox_due ON surestep.outbox USING btree (next_at) WHERE (ended IS NULL);

CREATE INDEX runs_by_age ON surestep.runs USING btree (created_at);

CREATE INDEX runs_by_end ON surestep.runs USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX runs_by_parent ON surestep.runs USING btree (forked_from) WHERE (forked_from IS NOT NULL);

CREATE INDEX runs_by_thread ON surestep.runs USING btree (thread_id, created_at);

CREATE INDEX runs_open ON surestep.runs USING btree (created_at) WHERE (status = ANY (ARRAY['running'::text, 'paused'::text, 'limited'::text]));

CREATE INDEX secrets_by_placeholder ON surestep.secrets USING btree (placeholder);

CREATE INDEX shadow_differences_by_pair ON surestep.shadow_differences USING btree (tool, candidate, difference_id);

CREATE INDEX tombstones_by_parent ON surestep.tombstones USING btree (forked_from) WHERE (forked_from IS NOT NULL);

CREATE INDEX tombstones_by_thread ON surestep.tombstones USING btree (thread_sha256, created_at);

CREATE INDEX tool_cache_by_expiry ON surestep.tool_cache USING btree (expires_at);

CREATE INDEX tool_changes_by_tool ON surestep.tool_changes USING btree (tool, change_id);

CREATE INDEX tool_slots_by_tool ON surestep.tool_slots USING btree (tool);

CREATE TRIGGER answer_stays BEFORE UPDATE ON surestep.approvals FOR EACH ROW WHEN ((old.status <> ALL (ARRAY['pending'::text, 'withdrawn'::text]))) EXECUTE FUNCTION surestep.keep_answer();

CREATE TRIGGER asked_again_is_told AFTER UPDATE ON surestep.approvals FOR EACH ROW WHEN ((((new.status IS DISTINCT FROM old.status) AND (new.status = ANY (ARRAY['pending'::text, 'expired'::text]))) OR ((new.status = 'pending'::text) AND (new.escalated_at IS DISTINCT FROM old.escalated_at)))) EXECUTE FUNCTION surestep.tell_of_approval();

CREATE TRIGGER asked_is_told AFTER INSERT ON surestep.approvals FOR EACH ROW WHEN ((new.status = 'pending'::text)) EXECUTE FUNCTION surestep.tell_of_approval();

CREATE TRIGGER audited_added AFTER INSERT ON surestep.approvals REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('approval', 'r.run_id', 'approval_id', 'approval_id,run_id,thread_id,step_id,args_sha256,request,status,decision,decided_by,decided_at,created_at,expires_at,voters,asking,escalated_at', 'status');

CREATE TRIGGER audited_added AFTER INSERT ON surestep.decisions REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('decision', '(SELECT a.run_id FROM surestep.approvals a WHERE a.approval_id = r.approval_id)', 'decision_id', 'decision_id,approval_id,asking,decided_by,roles,tenant,via,args_sha256,decision,decided_at', '');

CREATE TRIGGER audited_added AFTER INSERT ON surestep.instructions REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('instruction', 'r.run_id', 'instruction_id', 'run_id,instruction_id,message,said_by,sent_at,taken_at', '');

CREATE TRIGGER audited_added AFTER INSERT ON surestep.journal REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_journal();

CREATE TRIGGER audited_added AFTER INSERT ON surestep.runs REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('run', 'r.run_id', 'run_id', 'run_id,thread_id,tenant,request_id,goal,input,input_sha256,status,summary,created_at,ended_at,forked_from', 'status');

CREATE TRIGGER audited_added AFTER INSERT ON surestep.tombstones REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('tombstone', 'r.run_id', 'run_id', 'run_id,tenant,request_sha256,thread_sha256,request_id,thread_id,input_sha256,status,effects,place,folder,created_at,ended_at,archived_at,erased_at,forked_from', '');

CREATE TRIGGER audited_added AFTER INSERT ON surestep.tool_changes REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('setting', '''settings''', 'change_id', 'change_id,tool,changed_at,changed_by,before,after', '');

CREATE TRIGGER audited_changed AFTER UPDATE ON surestep.approvals REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('approval', 'r.run_id', 'approval_id', 'approval_id,run_id,thread_id,step_id,args_sha256,request,status,decision,decided_by,decided_at,created_at,expires_at,voters,asking,escalated_at', 'status');

CREATE TRIGGER audited_changed AFTER UPDATE ON surestep.decisions REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('decision', '(SELECT a.run_id FROM surestep.approvals a WHERE a.approval_id = r.approval_id)', 'decision_id', 'decision_id,approval_id,asking,decided_by,roles,tenant,via,args_sha256,decision,decided_at', '');

CREATE TRIGGER audited_changed AFTER UPDATE ON surestep.instructions REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('instruction', 'r.run_id', 'instruction_id', 'run_id,instruction_id,message,said_by,sent_at,taken_at', '');

CREATE TRIGGER audited_changed AFTER UPDATE ON surestep.runs REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('run', 'r.run_id', 'run_id', 'run_id,thread_id,tenant,request_id,goal,input,input_sha256,status,summary,created_at,ended_at,forked_from', 'status');

CREATE TRIGGER audited_changed AFTER UPDATE ON surestep.tombstones REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('tombstone', 'r.run_id', 'run_id', 'run_id,tenant,request_sha256,thread_sha256,request_id,thread_id,input_sha256,status,effects,place,folder,created_at,ended_at,archived_at,erased_at,forked_from', '');

CREATE TRIGGER audited_changed AFTER UPDATE ON surestep.tool_changes REFERENCING NEW TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('setting', '''settings''', 'change_id', 'change_id,tool,changed_at,changed_by,before,after', '');

CREATE TRIGGER audited_deleted AFTER DELETE ON surestep.runs REFERENCING OLD TABLE AS given FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_rows('run', 'r.run_id', 'run_id', 'run_id,thread_id,tenant,request_id,goal,input,input_sha256,status,summary,created_at,ended_at,forked_from', 'status');

CREATE TRIGGER change_noted AFTER INSERT OR DELETE OR UPDATE ON surestep.tool_settings FOR EACH ROW EXECUTE FUNCTION surestep.note_tool_change();

CREATE TRIGGER changes_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON surestep.tool_changes FOR EACH STATEMENT EXECUTE FUNCTION surestep.refuse_rewriting();

CREATE TRIGGER decisions_stay BEFORE DELETE OR UPDATE ON surestep.decisions FOR EACH ROW EXECUTE FUNCTION surestep.keep_decision();

CREATE TRIGGER failure_is_told AFTER UPDATE ON surestep.runs FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) AND (new.status = ANY (ARRAY['failed'::text, 'limited'::text])))) EXECUTE FUNCTION surestep.tell_of_run();

CREATE TRIGGER heed_tombstones BEFORE INSERT ON surestep.runs FOR EACH ROW EXECUTE FUNCTION surestep.heed_tombstones();

CREATE TRIGGER settings_stay BEFORE TRUNCATE ON surestep.tool_settings FOR EACH STATEMENT EXECUTE FUNCTION surestep.refuse_rewriting();

CREATE TRIGGER stays BEFORE DELETE OR UPDATE OR TRUNCATE ON surestep.audit FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();

CREATE TRIGGER stays BEFORE DELETE OR TRUNCATE ON surestep.audit_chains FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();

CREATE TRIGGER stays BEFORE DELETE OR UPDATE OR TRUNCATE ON surestep.audit_sealed FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();

CREATE TRIGGER stays BEFORE DELETE OR UPDATE OR TRUNCATE ON surestep.audit_seals FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();

ALTER TABLE ONLY surestep.approvals
    ADD CONSTRAINT approvals_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.artifacts
    ADD CONSTRAINT artifacts_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.decisions
    ADD CONSTRAINT decisions_approval_id_fkey FOREIGN KEY (approval_id) REFERENCES surestep.approvals(approval_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.instructions
    ADD CONSTRAINT instructions_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.journal
    ADD CONSTRAINT journal_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.leases
    ADD CONSTRAINT leases_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.outbox
    ADD CONSTRAINT outbox_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.resumptions
    ADD CONSTRAINT resumptions_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;

ALTER TABLE ONLY surestep.template_uses
    ADD CONSTRAINT template_uses_run_id_fkey FOREIGN KEY (run_id) REFERENCES surestep.runs(run_id) ON DELETE CASCADE;
