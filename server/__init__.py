"""The environment server. Installed as `kernel_env.server`; in a checkout it is the package `server`."""
