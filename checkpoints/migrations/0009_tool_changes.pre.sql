-- What was changed about tools, by whom and when. A trigger writes here, so that no way of changing a setting is missed,
-- and another one keeps what is written.
CREATE TABLE surestep.tool_changes (
    change_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool        text NOT NULL,
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by  text NOT NULL,
    before      jsonb NOT NULL,
    after       jsonb NOT NULL
);
CREATE INDEX tool_changes_by_tool ON surestep.tool_changes (tool, change_id);

CREATE FUNCTION surestep.note_tool_change() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE OR DELETE ON surestep.tool_settings
FOR EACH ROW EXECUTE FUNCTION surestep.note_tool_change();

CREATE FUNCTION surestep.refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of %: what was changed about tools stays on record', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER changes_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON surestep.tool_changes
FOR EACH STATEMENT EXECUTE FUNCTION surestep.refuse_rewriting();

CREATE TRIGGER settings_stay BEFORE TRUNCATE ON surestep.tool_settings
FOR EACH STATEMENT EXECUTE FUNCTION surestep.refuse_rewriting();
