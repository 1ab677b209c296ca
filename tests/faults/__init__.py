"""Faults made by seeded scripts: damaged and hostile files, and processes that are killed."""
