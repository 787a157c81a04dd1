"""The side that orders: stages, processes, queue and verdicts. Imports no torch and runs no submitted code."""
