"""The papers' tables and figures, each by one command: ``python -m reproduction --list``.

Every item prints the paper's figures beside ours, saves its picture and ends with a verdict. What
it printed is kept in ``records``, from which the documentation's pages are made. Nothing is
downloaded: ``python -m reproduction.prepare`` says which public files are wanted, and turns them
into what ``--data`` takes.
"""
