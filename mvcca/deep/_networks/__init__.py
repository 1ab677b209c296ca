"""Layers and networks; public in `mvcca.deep.layers` and `mvcca.deep.encoders`."""
