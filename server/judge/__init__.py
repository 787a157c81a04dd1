"""The judge: one trusted process per device. Owns seeds, inputs, reference, expected outputs, comparison and clock.

It never imports a submission and never opens memory a submission made.
"""
