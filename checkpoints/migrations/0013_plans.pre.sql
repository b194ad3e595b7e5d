-- Rows about plans as such are few among many: what became of each draft, and plans read in an older version.
CREATE INDEX journal_of_plans ON surestep.journal (kind, at) WHERE kind IN ('draft', 'older_form');
