"""The answers as arrays of numbers, one entry per answer."""

import numpy as np


class AnswerTable:
    """The answers as arrays of numbers, one entry per answer."""

    def __init__(self, design, answers, column="seconds"):
        self.conditions = design.conditions
        self.people = tuple(sorted({row["participant"] for row in answers}))
        self.items = tuple(sorted({row["item"] for row in answers}))

        def numbers(name, values):
            place = {value: i for i, value in enumerate(values)}
            return np.array([place[row[name]] for row in answers], int)

        self.person = numbers("participant", self.people)
        self.item = numbers("item", self.items)
        self.condition = numbers("condition", self.conditions)
        self.block = np.array([row["block"] for row in answers], int)
        self.right = np.array([bool(row["correct"]) for row in answers], bool)
        self.seconds = np.array([row[column] or 0 for row in answers], float)
        self.timed = self.seconds > 0  # the browser's time may be missing

    def means(self, values, keep, c):
        """Mean of `values` per person in condition c; NaN without an answer."""
        keep = keep & (self.condition == c)
        n = len(self.people)
        total, count = np.bincount(self.person[keep], values[keep], n), np.bincount(self.person[keep], minlength=n)
        return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)

    def places(self, c):
        """The block in which each person met condition c; -1 if never."""
        found = np.full(len(self.people), -1)
        keep = self.condition == c
        found[self.person[keep]] = self.block[keep]
        return found
