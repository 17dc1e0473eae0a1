"""The static site of the documentation (`make site`).

The pages of docs/ stay where they are, to be read on any host of git repositories. `staging` copies them into a folder
and turns their links; `commands`, `properties` and `api` write reference pages from the code; Sphinx makes HTML of all;
`links` finds dead links in it.
"""
