"""Identification of DDP buckets by their parameters."""

import itertools
import weakref


class Buckets:
    """Numbers of buckets: equal for the same parameters in the same order, and otherwise unique in this process.

    DDP counts the buckets of each model from 0, and rearranges them after the first step. So DDP's number does not identify a
    bucket whose late values join the next step, element by element.
    """

    def __init__(self):
        self._known = {}
        self._numbers = itertools.count()

    def number(self, parameters):
        """Number of the bucket with these parameters."""
        key = tuple(map(id, parameters))
        number, known = self._known.get(key, (None, ()))
        # Python reuses the identities of deleted parameters.
        if number is None or any(one() is not parameter for one, parameter in zip(known, parameters)):
            self._forget()
            number = next(self._numbers)
            self._known[key] = number, [weakref.ref(parameter) for parameter in parameters]
        return number

    def _forget(self):
        gone = [key for key, (_, known) in self._known.items() if any(one() is None for one in known)]
        for key in gone:
            del self._known[key]
