-- Calls that failed, by the hash of tool, version, tenant and arguments: what fails again and again is not made again.
CREATE TABLE surestep.failed_calls (
    key text PRIMARY KEY,
    tool text NOT NULL,
    failed_at timestamptz[] NOT NULL,
    code text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX failed_calls_by_change ON surestep.failed_calls (changed_at);
CREATE INDEX failed_calls_by_expiry ON surestep.failed_calls (expires_at);

-- Limits over all workers: who holds a slot of a tool, or waits for one, and when its calls started lately.
CREATE TABLE surestep.tool_slots (
    slot text PRIMARY KEY,
    tool text NOT NULL,
    worker text NOT NULL,
    taken boolean NOT NULL,
    asked_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX tool_slots_by_tool ON surestep.tool_slots (tool);

CREATE TABLE surestep.tool_starts (
    tool text NOT NULL,
    slot text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (tool, at, slot)
);
