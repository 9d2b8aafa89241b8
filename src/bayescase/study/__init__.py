"""The human-subject study: a fitted model becomes an experiment in a browser, with data that is never lost.

Read in this order: design (what is shown, frozen), schedule (who sees what), making (a model → a design, with stimuli, topics,
coders and wording), tables and store (what is kept, and how), server (pages), simulate (people who are not), export and
verify, mixed, analysis and its report, doctor.
"""
