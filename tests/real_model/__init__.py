"""A real small model behind a real server plans thirty goals; what must not happen is a violation."""
