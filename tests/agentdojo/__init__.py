"""AgentDojo on Surestep: what attacks reach, what a user loses, and what people are asked (`make agentdojo`)."""
