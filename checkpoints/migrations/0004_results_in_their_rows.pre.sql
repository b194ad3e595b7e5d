-- A result of up to 4 KB stays in its row. Moved out, as PostgreSQL does from 2 KB on, one of 2 KB takes 500 bytes more:
-- for what points to it, a second index, and pages of which a quarter stays empty.
ALTER TABLE surestep.artifacts SET (toast_tuple_target = 4080);
