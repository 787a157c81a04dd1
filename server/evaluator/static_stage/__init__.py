"""The static rules, run in a disposable child without site-packages: this package imports the standard library only."""
