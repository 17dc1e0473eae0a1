"""The simulator's report: what fresh seeds did, what they reached and found, and which broken rules were noticed.

`facts` has the numbers, `picture` draws the faults, `pages` writes Markdown and HTML.
"""
