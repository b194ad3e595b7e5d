"""The real engine on virtual time: thousands of schedules, crashes and faults, each named by a seed."""
