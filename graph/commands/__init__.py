"""What the subcommands of `surestep` do; imported only when one is called, so that help and errors are quick."""
