-- An archived fork still holds what it has inherited: who erases its parent is told.
ALTER TABLE surestep.tombstones ADD COLUMN forked_from text;
CREATE INDEX tombstones_by_parent ON surestep.tombstones (forked_from) WHERE forked_from IS NOT NULL;
