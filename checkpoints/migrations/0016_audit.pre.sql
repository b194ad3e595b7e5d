-- The audit: what has happened, one chain of hashes per run, and one for each kind of thing that belongs to no run.
-- Each entry is written by a trigger, in the statement that it tells of, so that no way of writing is missed. Of what a
-- run holds only salted hashes stand here: once its salt is deleted nobody can guess what was hashed, and the chain
-- holds still. The functions act as their owner: who may write a run need not be able to write its audit.

-- The end of each chain, to append to. `sealed`: the newest seal covers all of it.
CREATE TABLE surestep.audit_chains (
    chain   text PRIMARY KEY CHECK (chain !~ '\n'),
    salt    bytea,
    length  bigint NOT NULL DEFAULT 0,
    head    bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    sealed  boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70);
CREATE INDEX audit_chains_to_seal ON surestep.audit_chains (chain) WHERE NOT sealed;

-- hash = sha256(hash of the entry before || chain, seq, microseconds, kind, subject by lines || content).
CREATE TABLE surestep.audit (
    chain    text NOT NULL,
    seq      bigint NOT NULL,
    at       timestamptz NOT NULL,
    kind     text NOT NULL CHECK (kind !~ '\n'),
    subject  text NOT NULL,
    content  bytea NOT NULL,
    details  jsonb,
    hash     bytea NOT NULL,
    PRIMARY KEY (chain, seq)
);

-- A seal covers the ends of all chains that have grown since the one before, and that one; a key that is not in this
-- database signs it.
CREATE TABLE surestep.audit_seals (
    seal    bigint PRIMARY KEY,
    at      timestamptz NOT NULL,
    hash    bytea NOT NULL,
    key_id  text,
    mac     bytea
);
CREATE TABLE surestep.audit_sealed (
    seal    bigint NOT NULL,
    chain   text NOT NULL,
    length  bigint NOT NULL,
    head    bytea NOT NULL,
    PRIMARY KEY (seal, chain)
);
CREATE INDEX audit_sealed_by_chain ON surestep.audit_sealed (chain, seal);

CREATE FUNCTION surestep.audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of %: what was audited stays on record', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER stays BEFORE UPDATE OR DELETE OR TRUNCATE ON surestep.audit
FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();
CREATE TRIGGER stays BEFORE UPDATE OR DELETE OR TRUNCATE ON surestep.audit_seals
FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();
CREATE TRIGGER stays BEFORE UPDATE OR DELETE OR TRUNCATE ON surestep.audit_sealed
FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();
CREATE TRIGGER stays BEFORE DELETE OR TRUNCATE ON surestep.audit_chains
FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_stays();

-- The end of a chain, which is begun if there is none, and held until the transaction is over. Chains are always held
-- after the rows that they tell of, and several of them in their order: two transactions never wait in a ring.
CREATE FUNCTION surestep.audit_hold(of_chain text) RETURNS surestep.audit_chains LANGUAGE plpgsql AS $$
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

-- Appends an entry to a chain that is held; gives its new end, which is written down when all of them are appended.
CREATE FUNCTION surestep.audit_append(
    held surestep.audit_chains, kind text, subject text, content bytea, told jsonb DEFAULT NULL
) RETURNS surestep.audit_chains LANGUAGE plpgsql AS $$
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

CREATE FUNCTION surestep.audit_let_go(held surestep.audit_chains) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE surestep.audit_chains SET length = held.length, head = held.head, sealed = false WHERE chain = held.chain;
END $$;

-- One entry that no table holds. What `told` says is stored as it is: it is never to be what a run holds.
CREATE FUNCTION surestep.audit_note(to_chain text, kind text, subject text, told jsonb DEFAULT '{}') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    held surestep.audit_chains := surestep.audit_hold(to_chain);
BEGIN
    PERFORM surestep.audit_let_go(surestep.audit_append(
        held, kind, subject, sha256(held.salt || convert_to(told::text, 'UTF8')), told
    ));
END $$;

-- The journal has a function of its own: it is where the speed of runs is decided.
CREATE FUNCTION surestep.audit_journal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
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

-- Of any other table; the arguments are those of `audit_table`, by which its triggers are made.
CREATE FUNCTION surestep.audit_rows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog SET timezone = 'UTC' AS $$
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

-- Has every row that is added to a table or changed in it audited from now on, as `what.added` and `what.changed`, or
-- with the value of the column `verb`. `chain` is the chain's name, as an expression over the row `r`; `key` is the
-- column that names the row; `columns`, separated by commas, are what is hashed, in the order in which the query of the
-- table in `queries.sql` gives them to who verifies (`checkpoints/audited.py`).
CREATE FUNCTION surestep.audit_table(
    which regclass, what text, chain text, key text, columns text, verb text DEFAULT '', deletions boolean DEFAULT false
) RETURNS void LANGUAGE plpgsql AS $$
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

REVOKE EXECUTE ON FUNCTION surestep.audit_hold, surestep.audit_append, surestep.audit_let_go, surestep.audit_table
FROM PUBLIC;

-- From here on.
CREATE TRIGGER audited_added AFTER INSERT ON surestep.journal REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION surestep.audit_journal();
SELECT surestep.audit_table('surestep.runs', 'run', 'r.run_id', 'run_id',
    'run_id,thread_id,tenant,request_id,goal,input,input_sha256,status,summary,created_at,ended_at,forked_from',
    verb => 'status', deletions => true);
SELECT surestep.audit_table('surestep.approvals', 'approval', 'r.run_id', 'approval_id',
    'approval_id,run_id,thread_id,step_id,args_sha256,request,status,decision,decided_by,decided_at,created_at,'
    'expires_at,voters,asking,escalated_at',
    verb => 'status');
SELECT surestep.audit_table('surestep.decisions', 'decision',
    '(SELECT a.run_id FROM surestep.approvals a WHERE a.approval_id = r.approval_id)', 'decision_id',
    'decision_id,approval_id,asking,decided_by,roles,tenant,via,args_sha256,decision,decided_at');
SELECT surestep.audit_table('surestep.tombstones', 'tombstone', 'r.run_id', 'run_id',
    'run_id,tenant,request_sha256,thread_sha256,request_id,thread_id,input_sha256,status,effects,place,folder,'
    'created_at,ended_at,archived_at,erased_at,forked_from');
SELECT surestep.audit_table('surestep.tool_changes', 'setting', '''settings''', 'change_id',
    'change_id,tool,changed_at,changed_by,before,after');

-- What there was before is audited as it is now: a copy of it passes the same triggers.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT c.relname AS name, min(pg_get_triggerdef(t.oid)) AS trigger
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = 'surestep' AND t.tgname = 'audited_added'
        GROUP BY c.relname
        ORDER BY array_position(ARRAY['runs', 'approvals', 'decisions', 'journal'], c.relname::text)
    LOOP
        EXECUTE format('CREATE TABLE surestep.audit_copy (LIKE surestep.%I)', found.name);
        EXECUTE replace(found.trigger, 'ON surestep.' || found.name, 'ON surestep.audit_copy');
        EXECUTE format('INSERT INTO surestep.audit_copy SELECT * FROM surestep.%I', found.name);
        DROP TABLE surestep.audit_copy;
    END LOOP;
END $$;
