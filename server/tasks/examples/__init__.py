"""The worked examples a prompt shows, whole modules each. They are read as text and never imported by the server."""
