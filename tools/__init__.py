"""What the agent can do: tool specs, the registry, the safeguarded call and the toolkits."""
