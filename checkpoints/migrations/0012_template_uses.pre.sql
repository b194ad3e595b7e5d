-- How often each template was used and has served, by name and content, and which of them are set aside. `recent` is how
-- its last runs have ended, the newest first; while it is set aside that stays as it was then. A run counts once.
CREATE TABLE surestep.template_standing (
    template       text NOT NULL,
    sha256         text NOT NULL,
    used           bigint NOT NULL,
    succeeded      bigint NOT NULL,
    failed         bigint NOT NULL,
    recent         boolean[] NOT NULL,
    last_failure   text,
    first_used_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    set_aside_at   timestamptz,
    PRIMARY KEY (template, sha256)
);

CREATE TABLE surestep.template_uses (
    run_id      text PRIMARY KEY REFERENCES surestep.runs ON DELETE CASCADE,
    template    text NOT NULL,
    sha256      text NOT NULL,
    succeeded   boolean,
    code        text,
    counted_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
