"""Parts of the trainer: rows on the device, checkpoints, saved states."""
