"""Examples of blasx.nn on real data, each one command: python -m blasx.nn.examples NAME."""
