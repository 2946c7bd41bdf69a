"""retort ask --verify, and a conversation that was saved and is verified afterwards."""
import json

import asking
import cli
from asking import MISTAKE

ADD = {"calls": ["print(sum(map(int, open('d.csv'))))\n_ = open('made.txt', 'w').write('x')"]}


class Checked(asking.Case):
    def setUp(self):
        super().setUp()
        self.data = self.write("d.csv", "20\n22\n")

    def verified(self, text, *args):
        return self.ask([MISTAKE, ADD, {"expect": "42", "text": text}], "--verify", "-f", self.data, *args)

    def test_an_answer_that_holds(self):
        done = self.verified("It is 42.")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "It is 42.\n")
        self.assertIn("2 cells: 1 the same, 1 undone", done.err)

    def test_a_number_from_nowhere(self):
        done = self.verified("It is 42, 12.5 % more.")
        self.assertStatus(done, 1)
        self.assertEqual(done.out, "It is 42, 12.5 % more.\n")  # the answer alone
        self.assertIn("1 number of the answer stands in no output: 12.5 %\n", done.err)

    def test_a_saved_conversation(self):
        self.assertStatus(self.verified("It is 42.", "--save", self.path("a.ipynb")), 0)
        retort = json.loads(self.read("a.ipynb"))["metadata"]["retort"]
        self.assertEqual([f["name"] for f in retort["files"]], ["d.csv"])
        self.assertTrue(retort["model"])
        self.assertStatus(cli.run("verify", self.path("a.ipynb")), 2)
        self.assertStatus(cli.run("verify", "-f", self.data, self.path("a.ipynb")), 0)
        self.write("d.csv", "20\n23\n")
        done = cli.run("verify", "-f", self.data, self.path("a.ipynb"))
        self.assertStatus(done, 1)
        self.assertIn("not the file", done.err)
        self.assertIn("- 42\n      + 43", done.out)
