"""What the defaults rest on: quality of the default settings beside their alternatives.

Methods and settings that folds choose beside the best in hindsight, rankings, expected
correlations, probabilities of matches, intervals, missing cells, and methods on real data.
"""
