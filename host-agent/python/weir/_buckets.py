"""Buckets of DDP, told apart by what is in them."""

import itertools
import weakref


class Buckets:
    """Numbers of buckets: the same for the same parameters in the same order, and no other's.

    DDP counts its buckets from 0 in each model, and arranges them anew after the first step. So what is kept of a bucket until
    the next step, element by element, is not known by DDP's number. A number is of this process alone.
    """

    def __init__(self):
        self._known = {}
        self._numbers = itertools.count()

    def number(self, parameters):
        """Of a bucket with these parameters."""
        key = tuple(map(id, parameters))
        number, known = self._known.get(key, (None, ()))
        # Others may have got the identities of parameters that are gone.
        if number is None or any(one() is not parameter for one, parameter in zip(known, parameters)):
            self._forget()
            number = next(self._numbers)
            self._known[key] = number, [weakref.ref(parameter) for parameter in parameters]
        return number

    def _forget(self):
        gone = [key for key, (_, known) in self._known.items() if any(one() is None for one in known)]
        for key in gone:
            del self._known[key]
