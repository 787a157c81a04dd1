"""Far side of the wall: everything here shares a process with submitted code, or becomes such a process.

Nothing in this package decides anything. What it reports is a claim; the judge believes only bytes in memory it owns
and its own clock. It imports the protocol and the sandbox, never the evaluator or the judge.
"""
