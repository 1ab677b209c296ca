"""Tables and figures of the five papers, one protocol for all methods of each.

``python -m benchmarks.papers --list`` names them. `protocol` says what a table consists of,
`problems` which data it uses, `p0` to `p4` which methods; `runs` fits and stores, `report` makes
pages and `claims` verdicts from what is stored.
"""
