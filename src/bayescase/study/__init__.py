"""The human-subject study: an experiment in a browser, with data that is never lost.

Rooms, in the order of reading: design (what a study is, and a model → a design), data (what is kept, and how), pages (what
people see), analysis (what the answers say); then simulate (people who are not) and doctor (is a study ready?).
"""
