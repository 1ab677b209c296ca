"""The deep estimators, one method or family per file; public as `mvcca.deep.NAME`."""
