-- What people have said to a run is audited like what they have decided.
SELECT surestep.audit_table('surestep.instructions', 'instruction', 'r.run_id', 'instruction_id',
    'run_id,instruction_id,message,said_by,sent_at,taken_at');
