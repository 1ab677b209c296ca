"""What deep estimators share: constructors, training, default networks, labels, linear CCA."""
