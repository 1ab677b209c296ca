"""Terms of losses and their gradients; public in `mvcca.deep.functional` and `objectives`."""
