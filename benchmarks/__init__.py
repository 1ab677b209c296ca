"""Benchmarks of mvcca. Scripts run from the root of the repository, as modules.

For instance ``python -m benchmarks.scale.ranking --help``. What was measured is in RESULTS.md.

alignment : maps between embeddings: migrated models, frozen encoders, few known pairs
defaults : what the default settings rest on
papers : tables and figures of five papers, by one protocol
peers : time, memory and correlations beside other packages
scale : time and memory beside floors, and data larger than memory
real : readers of the real data
results : stored records, and the pages made from them
asv_suite : timings that asv tracks from commit to commit
"""
