"""Programs that examine tasks, each a process of its own: they run a task's source with torch, and no submission."""
