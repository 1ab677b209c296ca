"""Compare methods on held-out objects: cases, fitting and measuring, tables and HTML report."""
