# tries: random numbers of every library; those of two boxes must differ
# why: boxes are forks of one process: without care, all of them draw the same "random" numbers
# check: values_differ
# %% a
import os, random, secrets, ssl, tempfile, uuid
import numpy as np
def draw():
    print("VALUE random", random.random())
    print("VALUE numpy", np.random.rand())
    print("VALUE default_rng", np.random.default_rng().random())
    print("VALUE ssl", ssl.RAND_bytes(8).hex())
    print("VALUE urandom", os.urandom(8).hex())
    print("VALUE uuid4", uuid.uuid4())
    print("VALUE secrets", secrets.token_hex(8))
    print("VALUE tempfile", next(tempfile._get_candidate_names()))
draw()
# %% b
import os, random, secrets, ssl, tempfile, uuid
import numpy as np
print("VALUE random", random.random())
print("VALUE numpy", np.random.rand())
print("VALUE default_rng", np.random.default_rng().random())
print("VALUE ssl", ssl.RAND_bytes(8).hex())
print("VALUE urandom", os.urandom(8).hex())
print("VALUE uuid4", uuid.uuid4())
print("VALUE secrets", secrets.token_hex(8))
print("VALUE tempfile", next(tempfile._get_candidate_names()))
print("OK")
