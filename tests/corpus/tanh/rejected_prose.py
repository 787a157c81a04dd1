I think that a fused kernel would be best here, but I did not write one.
