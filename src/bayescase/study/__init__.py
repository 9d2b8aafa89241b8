"""The human-subject study: a fitted model becomes an experiment in a browser, with data that is never lost.

Read in this order: design (what is shown, frozen), schedule (who sees what), stimuli, topics, coders, wording and making (a
model → a design), tables, journal and store (what is kept, and how), security, pages and server (what people see), simulate
(people who are not), export and verify, mixed, analysis and its report, doctor, commands.
"""
