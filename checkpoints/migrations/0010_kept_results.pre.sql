-- Who has asked for a kept result, so that it goes when that thread is erased; NULL where an older version has kept it.
ALTER TABLE surestep.tool_cache ADD COLUMN run_id text;
CREATE INDEX tool_cache_by_expiry ON surestep.tool_cache (expires_at);
