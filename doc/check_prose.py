"""Check prose for words that have a plainer alternative.

``python doc/check_prose.py [PATH ...]`` reads pages (.rst, .md), docstrings, messages of errors and
warnings, and the text of gallery scripts, in files and folders. It skips code, formulas, literals
and references. Without arguments it reads the guide, the README and the package; ``--count`` prints
only how often each word occurs.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "doc", ROOT / "skvmf"]
GENERATED = {"items.rst", "errata.rst", "generated", "auto_examples", "_build"}

# What not to write, as a regular expression between word boundaries, and what to write instead.
WORDS = {
    r"the same bits|to the last bit|bit for bit|no bit of": "bit-identical",
    r"shared? out|shared among|divid(?:e|es|ed|ing) (?:a )?rows?": "assign to",
    r"(?:the|their|its|all|row's|these|those|such|most|sparse|hard|small|other) shares": (
        "responsibilities, memberships, proportions"
    ),
    r"unions?": "merge, merged component",
    r"join(?:s|ed|ing)?": "merge",
    r"beside": "next to, compared with, in addition to",
    r"(?:from|written) elsewhere": "the name of the place",
    r"faults?": "bug, error",
    r"(?:bytes?|nats|steps?|seconds?|s|\$|sums?|times?|tasks?|numbers?|weights?|once|rows|topic) "
    r"an? (?:row|machine|thread|component|fit|iteration|core|hour|block|dimension|type|document)": (
        "per"
    ),
    r"Where (?!next|is |are |does |do |can |a \w+ (?:comes|fit|starts))[^?]*?,": "If",
    r"where (?:there|they|you|users|possible|wanted|needed)": "if",
    r"at the least": "at least",
    r"of which": "a new sentence",
    r"(?<!there )(?<!There )is no (?!longer|more|such|need|way|reason|right|single|limit)\w+": (
        "is not a"
    ),
    r"(?:go|goes|going|went|gone) on": "continue",
    r"manners": "conventions, interface",
    r"ask(?:s|ed)? of": "need, require",
    r"whatever": "for any",
    r"whence|thereof|wherein|thereby|whilst|amongst|upon": "a plain word",
    r"anew|afresh": "again, from scratch",
    r"(?:can|could|to) be had": "is available",
    r"(?:is|are) told": "a statement",
    r"spare[sd]?": "save, avoid",
    r"climb(?:s|ed|ing)?": "increase",
    r"houses?|rooms?|crew|floor \d": "layer, folder, pool",
    r"so many (?:components|rows|features|clusters|threads|parameters|clear)": "this number of",
    r"nobody": "no other",
    r"against (?:ours|theirs)|h[eo]ld .{0,30}against": "compare with",
    r"wholly": "completely",
    r"wish(?:es)?": "request, want",
    r"hangs? on": "depend on",
    r"st(?:ands?|ood) still": "converge",
    r"drawn together": "similar",
    r"says? of": "predict for, tell about",
    r"learnt": "learned",
    r"takes? away|took away": "subtract, remove",
}
PATTERN = re.compile("|".join(rf"(?P<w{i}>(?<!\w)(?:{w})(?!\w))" for i, w in enumerate(WORDS)))
SKIPPED = re.compile(r"\s*(>>>|\.\. (?!list-table|csv-table|note|warning|rst-class|grid|figure))")
LITERAL = re.compile(r"``.*?``|:[\w:]+:`[^`]*`|`[^`]*`__?|`[^`]+`|\$[^$]*\$", re.DOTALL)


def paragraphs(text):
    """Yield the first line's number and the text of each paragraph of prose."""
    line, code_indent = 1, None
    for part in re.split(r"(\n[ \t]*\n)", re.sub(r"^```.*?^```", blank, text, flags=re.M | re.S)):
        indent = len(part) - len(part.lstrip(" "))
        if part.strip():
            if code_indent is not None and indent <= code_indent:
                code_indent = None
            if code_indent is None and not SKIPPED.match(part):
                yield line, part
            begins_code = re.match(r"\s*\.\. (code-block|math|literalinclude|toctree)", part)
            if code_indent is None and (begins_code or part.rstrip().endswith("::")):
                code_indent = indent
        line += part.count("\n")


def blank(match):
    """Return as many line ends as a match has."""
    return "\n" * match[0].count("\n")


def findings(text):
    """Yield the line, the words and the advice for each finding in a text."""
    for line, part in paragraphs(text):
        prose = LITERAL.sub(lambda match: "x" + blank(match), part)
        for match in PATTERN.finditer(prose):
            key, advice = list(WORDS.items())[int(match.lastgroup[1:])]
            yield line + prose[: match.start()].count("\n"), " ".join(match[0].split()), advice, key


def texts(path):
    """Yield the line before and the text of a page, docstring, message or gallery cell."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 0, text
        return
    for cell in re.finditer(r"^# %%\n((?:#.*\n)+)", text, re.MULTILINE):
        yield text[: cell.start(1)].count("\n"), re.sub("^# ?", "", cell[1], flags=re.MULTILINE)
    tree = ast.parse(text)
    yield from messages(tree)
    for node in ast.walk(tree):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False):
            yield node.body[0].lineno - 1, ast.get_docstring(node)


def messages(tree):
    """Yield the line before and the text of each error and warning, without what is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            parts = getattr(node.args[0], "values", node.args[:1])
            words = [part.value for part in parts if isinstance(getattr(part, "value", 0), str)]
            if re.search(r"(Error|Warning|\bwarn)$", ast.unparse(node.func)):
                yield node.args[0].lineno - 1, " ``x`` ".join(words)


def files(paths):
    """Yield the pages and Python files among paths and in folders."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in {".rst", ".md", ".py"} and not GENERATED & set(file.parts):
                yield file


def main():
    """Print the findings and return how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, default=DEFAULT)
    parser.add_argument("--count", action="store_true", help="print numbers only")
    options = parser.parse_args()
    counts = Counter()
    for path in files(options.paths):
        for before, text in texts(path):
            for line, words, advice, key in findings(text):
                counts[key] += 1
                if not options.count:
                    print(f"{path}:{before + line}: '{words}': write {advice}")
    for key, number in counts.most_common() if options.count else []:
        print(f"{number:5}  {WORDS[key]}  ({key[:40]})")
    print(f"{counts.total()} findings")
    return counts.total()


if __name__ == "__main__":
    sys.exit(bool(main()))
