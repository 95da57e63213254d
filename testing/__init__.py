"""MAGMA-style testers: one file per routine, one loop for all.

    python -m testing dgetrf -n 123 -n 1000:20000:1000 --lapack --check
    python -m testing run --small -p sdcz
    python -m testing selfcheck

testing_<routine>.py holds the routine's Case; case.py says what a Case is; tester.py is the loop.
"""
