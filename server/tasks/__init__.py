"""Tasks: what an agent has to write a kernel for, and how it is told so."""
