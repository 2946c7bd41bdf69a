# tries: what a restored session is: random numbers, files, transactions, generators, figures, event loops
# within: 60
# %% a
import asyncio, os, random, sqlite3
import numpy as np
import matplotlib.pyplot as plt
random.seed(7); np.random.seed(7)
expected = random.Random(7)
[random.random() for _ in range(5)], [expected.random() for _ in range(5)]
expected_np = np.random.RandomState(7)
generator = (i * i for i in range(100)); next(generator); next(generator)
file = open("text", "w+"); file.write("0123456789"); file.flush(); file.seek(4)
db = sqlite3.connect("base.db")
db.execute("create table t(a)"); db.execute("insert into t values (1)"); db.commit()
db.execute("insert into t values (2)")  # and the transaction stays open
figure, axes = plt.subplots(); axes.plot([1, 2, 3]); plt.close(figure)
await asyncio.sleep(0)
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (512, 4096))
os.chdir("/tmp"); os.environ["MARK"] = "x"; os.umask(0o77)
# %% a
# status: crashed
# restored: 1
random.random(), np.random.rand(), next(generator), file.read(3), os.chdir("/")
os._exit(0)
# %% a
assert random.random() == expected.random() and np.random.rand() == expected_np.rand()
assert next(generator) == 4
assert file.read(3) == "456", "the offset is the dead one's"
assert db.in_transaction and db.execute("select count(*) from t").fetchone() == (2,)
db.commit()
assert sqlite3.connect("/mnt/data/base.db").execute("select count(*) from t").fetchone() == (2,)
figure.savefig("/mnt/data/figure.png"); assert os.path.getsize("/mnt/data/figure.png") > 1000
assert asyncio.new_event_loop().run_until_complete(asyncio.sleep(0, 5)) == 5
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (512, 4096)
assert os.getcwd() == "/tmp" and os.environ["MARK"] == "x" and os.umask(0) == 0o77
# %% a
await asyncio.sleep(0.01)
print("OK")
