-- Which run a fork was made of. No foreign key: a fork holds all that it needs, and outlives its parent.
ALTER TABLE surestep.runs ADD COLUMN forked_from text;
CREATE INDEX runs_by_parent ON surestep.runs (forked_from) WHERE forked_from IS NOT NULL;
