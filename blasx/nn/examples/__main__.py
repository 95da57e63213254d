"""python -m blasx.nn.examples NAME [options]

    digits-mlp        16 units on handwritten digits: mean accuracy of stratified 5-fold tests
    digits-cnn        three convolutions on the same
    lenet             LeNet-5 on the same
    fibonacci         a recurrent network continues the Fibonacci sequence
    char-lstm         a character-level LSTM on the source of Python's standard library
    transformer-lm    a small transformer on the same
    dates             dates as people write them to ISO 8601, with Bahdanau's attention

Each takes --epochs, --seed and --quiet; NAME --help shows the others.
"""

import sys
from importlib import import_module

NAMES = {"digits-mlp": "digits", "digits-cnn": "digits", "lenet": "digits",
         "fibonacci": "fibonacci", "char-lstm": "language", "transformer-lm": "language",
         "dates": "dates"}


def main(arguments):
    """Run one example; returns its exit status."""
    if not arguments or arguments[0] not in NAMES:
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    module = import_module(f"blasx.nn.examples.{NAMES[arguments[0]]}")
    return module.main(arguments[0], arguments[1:]) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
