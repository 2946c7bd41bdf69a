"""retort token: new, list, revoke."""
import os
import stat
import unittest

import cli

TOKEN = r"rt_[A-Za-z0-9_-]{43}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Tokens(cli.Case):
    def setUp(self):
        super().setUp()
        self.state = self.path("state")

    def token(self, *args, **options):
        return cli.run("token", *args, "--state", self.state, **options)

    def new(self, *args):
        done = self.token("new", *args)
        self.assertStatus(done, 0)
        return done.out.strip()

    def list(self):
        done = self.token("list", "--json")
        self.assertStatus(done, 0)
        return done.json["data"]

    def fails(self, done, status, says):
        self.assertStatus(done, status)
        self.assertEqual(done.out, "")
        self.assertRegex(done.err, says)
        self.assertRegex(done.err, "^retort: ")


class New(Tokens):
    def test_prints_the_token_alone(self):
        done = self.token("new", "alice")
        self.assertStatus(done, 0)
        self.assertRegex(done.out, rf"^{TOKEN}\n$")
        self.assertEqual(done.err, "")
        self.assertNotEqual(self.new("bob"), done.out.strip())

    def test_says_at_a_terminal_where_it_goes(self):
        with cli.Terminal("token", "new", "alice", "--state", self.state) as t:
            t.expect(TOKEN)
            t.expect(r"only once[\s\S]*Authorization: Bearer")
            self.assertEqual(t.wait(), 0)

    def test_is_kept_for_its_owner_alone_and_not_in_clear(self):
        text = self.new("alice")
        self.assertEqual(stat.S_IMODE(os.stat(self.state).st_mode), 0o700)
        for name in os.listdir(self.state):
            self.assertEqual(stat.S_IMODE(os.stat(self.path("state", name)).st_mode), 0o600)
            self.assertNotIn(text[3:].encode(), self.read("state", name))

    def test_quotas(self):
        self.new("plain")
        self.new("bounded", "--sessions", "3", "--cells-per-minute", "60", "--memory", "2g",
                 "--operator")
        self.new("none", "--sessions", "none", "--cells-per-minute", "none", "--memory", "none")
        none = {"sessions": None, "cells_per_minute": None, "memory": None}
        self.assertEqual([(t["name"], t["operator"], t["quota"]) for t in self.list()],
                         [("plain", False, none),
                          ("bounded", True,
                           {"sessions": 3, "cells_per_minute": 60, "memory": 2 << 30}),
                          ("none", False, none)])

    def test_json(self):
        done = self.token("new", "alice", "--json")
        self.assertStatus(done, 0)
        self.assertEqual(sorted(done.json), ["name", "token"])
        self.assertRegex(done.json["token"], f"^{TOKEN}$")

    def test_a_name_that_is_taken(self):
        self.new("alice")
        self.fails(self.token("new", "alice"), 1, 'a token "alice" already')

    def test_what_cannot_be_printed_is_revoked_again(self):
        reader, writer = os.pipe()
        os.close(reader)
        for out in (os.open("/dev/full", os.O_WRONLY), writer):
            done = cli.finish(cli.start("token", "new", "alice", "--state", self.state, stdout=out))
            os.close(out)
            self.assertStatus(done, 125)
            self.assertIn("revoked", done.err)
            self.assertEqual(self.list(), [])


class ListAndRevoke(Tokens):
    def test_list_for_people(self):
        texts = [self.new("alice", "--memory", "512m"),
                 self.new("a-much-longer-name-than-that", "--operator")]
        done = self.token("list")
        self.assertStatus(done, 0)
        head, first, second = done.out.splitlines()
        self.assertRegex(head, "^NAME +CREATED +LAST USED +SESSIONS +CELLS/MIN +MEMORY$")
        self.assertRegex(first, rf"^alice +{TIME} +never +none +none +512m$")
        self.assertRegex(second, rf"^a-much-longer-name-than-that +{TIME} +never .* operator$")
        for text in texts:
            self.assertNotIn(text, done.out)

    def test_list_as_json(self):
        text = self.new("alice")
        done = self.token("list", "--json")
        self.assertNotIn(text, done.out)
        self.assertEqual(sorted(done.json), ["data", "next"])
        found, = done.json["data"]
        self.assertRegex(found["created_at"], f"^{TIME}$")
        self.assertIsNone(found["last_used_at"])

    def test_revoke(self):
        self.new("alice")
        self.new("bob")
        done = self.token("revoke", "alice")
        self.assertStatus(done, 0)
        self.assertEqual((done.out, done.err), ("", ""))
        self.assertEqual([t["name"] for t in self.list()], ["bob"])
        self.fails(self.token("revoke", "alice"), 1, 'no token "alice"')
        self.assertRegex(self.new("alice"), TOKEN)

    def test_where_nothing_was_made_nothing_is_made(self):
        self.fails(self.token("list"), 1, "No such file")
        self.fails(self.token("revoke", "a"), 1, "No such file")
        self.assertFalse(os.path.exists(self.state))
        os.mkdir(self.state, 0o700)
        self.fails(self.token("list"), 1, "no token was made")
        self.assertEqual(os.listdir(self.state), [])

    def test_a_list_that_cannot_be_written(self):
        self.new("alice")
        with open("/dev/full", "wb") as full:
            done = cli.finish(cli.start("token", "list", "--state", self.state, stdout=full))
        self.assertStatus(done, 125)
        self.assertRegex(done.err, "cannot write")


class Directories(Tokens):
    def test_a_person_has_one_at_home(self):
        user = cli.NOBODY if os.geteuid() == 0 else None
        home = self.path("home")
        os.mkdir(home)
        if user:
            os.chown(home, user, user)
        done = cli.run("token", "new", "a", env={"HOME": home}, user=user)
        self.assertStatus(done, 0)
        self.assertTrue(os.path.exists(f"{home}/.local/state/retort/retort.db"))
        done = cli.run("token", "new", "a", env={"HOME": home, "XDG_STATE_HOME": f"{home}/x"},
                       user=user)
        self.assertStatus(done, 0)
        self.assertTrue(os.path.exists(f"{home}/x/retort/retort.db"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can become others")
    def test_the_servers_files_stay_the_servers(self):
        os.mkdir(self.state, 0o700)
        os.chown(self.state, cli.NOBODY, cli.NOBODY)
        os.chmod(self.dir, 0o700)  # no way there for the server's uid
        self.new("alice")
        self.assertEqual([t["name"] for t in self.list()], ["alice"])
        st = os.stat(self.path("state", "retort.db"))
        self.assertEqual((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)),
                         (cli.NOBODY, cli.NOBODY, 0o600))
        # A server that fell has no use for a link to what is root's.
        secret = self.write("secret.db", b"")
        os.chmod(secret, 0o600)
        os.unlink(self.path("state", "retort.db"))
        os.symlink(secret, self.path("state", "retort.db"))
        self.fails(self.token("new", "bob"), 125, "cannot|must own")
        self.assertEqual(self.read("secret.db"), b"")
        self.assertEqual(os.stat(secret).st_uid, 0)

    def test_one_that_others_may_write_to(self):
        os.mkdir(self.state)
        os.chmod(self.state, 0o777)
        self.fails(self.token("new", "a"), 125, "others may write .*chmod go-w")

    def test_damaged(self):
        self.new("alice")
        self.write("state/retort.db", b"not a database" * 1000)
        for args in (["new", "b"], ["list"], ["revoke", "alice"]):
            with self.subTest(args=args):
                self.fails(self.token(*args), 125, f"{self.state}.*damaged.*backup")

    def test_many_at_once(self):
        names = [f"n{i}" for i in range(8)]
        started = [cli.start("token", "new", name, "--state", self.state) for name in names]
        for process in started:
            self.assertStatus(cli.finish(process), 0)
        self.assertEqual(sorted(t["name"] for t in self.list()), names)


class Usage(Tokens):
    def test_help_is_one_screen(self):
        for args in (["token", "--help"], ["help", "token"], ["token", "new", "-h"]):
            done = cli.run(*args)
            self.assertStatus(done, 0)
            lines = done.out.splitlines()
            self.assertLessEqual(len(lines), 24)
            self.assertLessEqual(max(map(len, lines)), 80)
            self.assertTrue(lines[0].startswith("usage: retort token"))

    def test_mistakes(self):
        for args, says in ((["--json"], "say what to do"),
                           (["make", "x"], '"make" is not understood'),
                           (["new"], "needs the name"),
                           (["revoke"], "needs the name"),
                           (["new", "a", "b"], '"b" is one too many'),
                           (["list", "a"], '"a" is one too many'),
                           (["new", "a b"], "cannot be a token's name"),
                           (["new", ""], "cannot be a token's name"),
                           (["new", "local"], "server's own"),
                           (["new", "a", "--sessions", "0"], 'say "none"'),
                           (["new", "a", "--sessions", "-1"], "not a whole number"),
                           (["new", "a", "--sessions", "1.5"], "not a whole number"),
                           (["new", "a", "--sessions", ""], "not a whole number"),
                           (["new", "a", "--cells-per-minute", "18446744073709551615"],
                            "not a whole number"),
                           (["new", "a", "--cells-per-minute", "99999999999999999999"],
                            "not a whole number"),
                           (["new", "a", "--memory", "0"], 'say "none"'),
                           (["new", "a", "--memory", "lots"], "not a size"),
                           (["list", "--sessions", "1"], '--sessions is for "retort token new"'),
                           (["revoke", "a", "--operator"], '--operator is for "retort token new"'),
                           (["new", "a", "--timeout", "5"], "unknown option --timeout"),
                           (["new", "a", "--sesions", "5"], "did you mean --sessions")):
            with self.subTest(args=args):
                self.fails(self.token(*args), 2, says)
                self.assertFalse(os.path.exists(self.path("state", "retort.db")) and
                                 self.list())
