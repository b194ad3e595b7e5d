"""What a killed process leaves behind: children are killed for real, and the effects counted outside of Surestep."""
