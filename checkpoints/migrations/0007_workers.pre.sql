-- Who drives a run, as its operating system knows it: whoever can see that it is dead need not wait for the lease's end.
ALTER TABLE surestep.leases ADD COLUMN worker text;
