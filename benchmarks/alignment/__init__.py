"""Maps between embeddings of different models: quality and time.

Frozen encoders aligned by many pairs, by few or by none; stored vectors migrated to a new model;
similarity of the layers of two models.
"""
