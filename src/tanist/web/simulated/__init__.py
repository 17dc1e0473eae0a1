"""The simulator as a source of the view: what `web/lab.html` shows, made by the nodes' own code in virtual time.

A run is played to its end and recorded, change by change; the page plays the recording. What the user does is a list of
actions with their virtual times, and a run with other actions is another run, from the beginning: the same list gives
the same bytes everywhere.
"""
