"""The simulator's report: what fresh seeds did, what they reached and found, and which broken rules were noticed.

`facts` has the numbers, `pages` writes Markdown and HTML, and draws the faults.
"""
