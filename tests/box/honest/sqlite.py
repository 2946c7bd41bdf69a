# tries: sqlite3 in memory and in a file, with transactions and two connections
import sqlite3
for name in (":memory:", "data.db"):
    with sqlite3.connect(name) as db:
        db.execute("create table t (n integer, s text)")
        db.executemany("insert into t values (?, ?)", [(i, f"zeile {i}") for i in range(10_000)])
        assert db.execute("select sum(n) from t").fetchone() == (49_995_000,)
one, two = sqlite3.connect("data.db"), sqlite3.connect("data.db", timeout=0.2)
one.execute("begin immediate")
try:
    two.execute("begin immediate")
    raise SystemExit("locks do not work")
except sqlite3.OperationalError as e:
    assert "locked" in str(e), e
one.rollback()
one.execute("pragma journal_mode=wal").fetchone()
two.execute("insert into t values (1, 'x')")
two.commit()
assert one.execute("select count(*) from t").fetchone()[0] == 10_001
print("OK")
