-- How often candidates have agreed with the tools that they shadow, and where the last of their differences were.
CREATE TABLE surestep.shadow_counts (
    tool        text NOT NULL,
    candidate   text NOT NULL,
    edition     text NOT NULL,
    agreed      bigint NOT NULL,
    differed    bigint NOT NULL,
    failed      bigint NOT NULL,
    in_a_row    bigint NOT NULL,
    since       timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tool, candidate, edition)
);

CREATE TABLE surestep.shadow_differences (
    difference_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool           text NOT NULL,
    candidate      text NOT NULL,
    noted_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    args_sha256    text NOT NULL,
    places         jsonb NOT NULL
);
CREATE INDEX shadow_differences_by_pair ON surestep.shadow_differences (tool, candidate, difference_id);
