"""What differs between runs of one script in two environments, and what in the environments may be the cause.

It compares data only: `irscope.driver.versions` makes the runs.
"""
