"""The built-in tasks, one KernelBench-format file each. They are read as text and never imported by the server."""
