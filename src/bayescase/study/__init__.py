"""The human-subject study: a fitted model becomes an experiment in a browser, with data that is never lost.

Read in this order: design (what is shown, frozen), making (a model → a design), schedule (who sees what), tables and store
(what is kept, and how), server (pages), simulate (people who are not), export, analysis.
"""
