"""The one way to make pages and pictures: templates (`templates`), and charts as SVG (`chart`).

The templates lie beside the modules that fill them. Those here are of all pages: page.html and parts.html, picture.svg
for a chart that is a file of its own, chart.css with the colours and the marks, and page.css. A page is one file that
needs nothing else: no script, no font and no picture from elsewhere.
"""
