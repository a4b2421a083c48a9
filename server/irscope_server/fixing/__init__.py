"""Changes that remove findings, made on a syntax tree that keeps formatting and comments (LibCST).

`proposals.proposals` is the entry.  A family of fixes is a module in `families`; `registry` finds them.  What a family
proposes is only a candidate: `irscope.driver.fixing` tries it before it is called verified.
"""
