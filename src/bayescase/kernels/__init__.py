"""Backends. One offers two operations over a block of rows, and nothing else:

    update_z   draw the rows of a block given the tables of φ; leave the change of the counts
    score_p    the best candidate of a block for each cluster, by log weight plus Gumbel noise

Tables of size S · ΣV go out, counts of the same size come back; p, ω and φ are drawn in one place from those tables.
"""
