"""Changes a program the way a coding agent does: parses it, rewrites it, shows the difference, tests the result."""

import ast
import difflib
import pathlib
import sys
import unittest

SOURCE = '''\
def mean(xs):
    t = 0
    for x in xs:
        t = t + x
    return t / len(xs)


def spread(xs):
    m = mean(xs)
    return sum((x - m) ** 2 for x in xs) / len(xs)
'''


class Rename(ast.NodeTransformer):
    """Gives names that say what they stand for."""

    names = {"xs": "values", "t": "total", "x": "value", "m": "center"}

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self.names.get(node.arg, node.arg)
        return node


directory = pathlib.Path("/tmp/project")
directory.mkdir()
module = directory / "stats.py"
module.write_text(ast.unparse(Rename().visit(ast.parse(SOURCE))) + "\n")
print("".join(difflib.unified_diff(
    SOURCE.splitlines(keepends=True), module.read_text().splitlines(keepends=True), "before", "after", n=0,
)), end="")

sys.path.insert(0, str(directory))
import stats  # noqa: E402  the module written above


class Test(unittest.TestCase):
    """What has to hold after the change."""

    def test_mean(self):
        self.assertEqual(stats.mean([1, 2, 3]), 2)

    def test_spread(self):
        self.assertAlmostEqual(stats.spread([1, 2, 3]), 2 / 3)


result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Test))
sys.exit(not result.wasSuccessful())
