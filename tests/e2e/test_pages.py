"""The pages that say which test shows what: each test they name exists, and nothing is left out."""
import glob
import os
import re

import pytest

import conftest
from test_oracle import CASES, COUNT_DIFFERENCES, DIFFERENCES, TRICKY_DIFFERENCES

PAGES = ("differences.md", "cases.md")


def page(name):
    with open(os.path.join(conftest.TOP, "docs", name), encoding="utf-8") as text:
        return text.read()


def rows(text):
    """[cells] of each row of the page's tables, without heads and rules."""
    found = []
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            found.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return [cells for cells in found if cells[-1] != "Test"]


def section(text, title):
    return text.split("\n## %s\n" % title, 1)[1].split("\n## ", 1)[0]


def known_tests():
    """{name: its source}, of test functions, C tests and checks of judges."""
    found = {}
    for path in glob.glob(conftest.TOP + "/tests/**/*", recursive=True):
        if path.endswith((".c", ".py")):
            with open(path, encoding="utf-8") as source:
                text = source.read()
            names = re.findall(r"^ *def (\w+)\(" if path.endswith(".py") else r"\bTEST\((\w+)\)",
                               text, re.MULTILINE)
            found.update(dict.fromkeys(names, text))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_the_page_names_tests_that_exist(name):
    tests, cases = known_tests(), {case["name"] for case in CASES}
    for cells in rows(page(name)):
        named = re.findall(r"`([^`]+)`", cells[-1])
        assert named, "no test: %s" % cells
        assert re.sub(r"`[^`]+`|\s", "", cells[-1]) == "", cells[-1]
        for test in named:
            function, case = re.fullmatch(r"(\w+)(?:\[([\w-]+)\])?", test).groups()
            assert function in tests, test
            if case and function in ("test_case", "test_counted"):
                assert case in cases, test
            elif case:
                assert re.search(r"\b%s\b" % re.escape(case), tests[function]), test


def test_differences_has_a_line_for_each_reason():
    used = {entry[0] for table in (DIFFERENCES, TRICKY_DIFFERENCES, COUNT_DIFFERENCES)
            for entry in table.values()}
    told = re.findall(r"^\| `([a-z-]+)` \|", page("differences.md"), re.MULTILINE)
    assert sorted(told) == sorted(used | {"small-flushes"})


@pytest.mark.parametrize("title, numbers", [
    ("Delivery", ["W%d" % n for n in range(1, 11)]),
    ("Records that stopped a partition", [str(n) for n in range(1, 10)]),
    ("Operation", ["O%d" % n for n in range(1, 21)]),
], ids=["delivery", "poison", "operation"])
def test_differences_answers_every_weak_point(title, numbers):
    told = [re.match(r"([WO]?\d+):", cells[0]) for cells in rows(section(page("differences.md"), title))]
    assert [match[1] for match in told if match] == numbers


def test_cases_are_all_there():
    told = [cells[0] for cells in rows(page("cases.md"))]
    assert told == ["C%02d" % n for n in (*range(1, 14), *range(20, 40), *range(50, 58),
                                          *range(60, 69))]
