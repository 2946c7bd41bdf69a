# tries: random numbers in box after box of the same zygote: each cell ends its interpreter, and a new box follows
# why: boxes are forks of one process; OpenSSL tells forks apart by their pid, which is the same in every box
# check: values_differ
# outside: none
# within: 60
# %% a
# status: crashed
import os, random, secrets, ssl, sys, tempfile, uuid
import numpy as np
print("VALUE random", random.random())
print("VALUE numpy", np.random.rand())
print("VALUE numpy_state", np.random.get_state()[1][:4])
print("VALUE default_rng", np.random.default_rng().random())
print("VALUE ssl", ssl.RAND_bytes(8).hex())
print("VALUE uuid4", uuid.uuid4())
print("VALUE secrets", secrets.token_hex(8))
print("VALUE tempfile", next(tempfile._get_candidate_names()))
sys.stdout.flush()
os._exit(3)
# %% a
# status: crashed
import os, random, secrets, ssl, sys, tempfile, uuid
import numpy as np
print("VALUE random", random.random())
print("VALUE numpy", np.random.rand())
print("VALUE numpy_state", np.random.get_state()[1][:4])
print("VALUE default_rng", np.random.default_rng().random())
print("VALUE ssl", ssl.RAND_bytes(8).hex())
print("VALUE uuid4", uuid.uuid4())
print("VALUE secrets", secrets.token_hex(8))
print("VALUE tempfile", next(tempfile._get_candidate_names()))
sys.stdout.flush()
os._exit(3)
# %% a
# status: crashed
import os, random, secrets, ssl, sys, tempfile, uuid
import numpy as np
print("VALUE random", random.random())
print("VALUE numpy", np.random.rand())
print("VALUE numpy_state", np.random.get_state()[1][:4])
print("VALUE default_rng", np.random.default_rng().random())
print("VALUE ssl", ssl.RAND_bytes(8).hex())
print("VALUE uuid4", uuid.uuid4())
print("VALUE secrets", secrets.token_hex(8))
print("VALUE tempfile", next(tempfile._get_candidate_names()))
sys.stdout.flush()
os._exit(3)
# %% a
# status: crashed
import os, random, secrets, ssl, sys, tempfile, uuid
import numpy as np
print("VALUE random", random.random())
print("VALUE numpy", np.random.rand())
print("VALUE numpy_state", np.random.get_state()[1][:4])
print("VALUE default_rng", np.random.default_rng().random())
print("VALUE ssl", ssl.RAND_bytes(8).hex())
print("VALUE uuid4", uuid.uuid4())
print("VALUE secrets", secrets.token_hex(8))
print("VALUE tempfile", next(tempfile._get_candidate_names()))
sys.stdout.flush()
os._exit(3)
# %% a
# status: crashed
import os, random, secrets, ssl, sys, tempfile, uuid
import numpy as np
print("VALUE random", random.random())
print("VALUE numpy", np.random.rand())
print("VALUE numpy_state", np.random.get_state()[1][:4])
print("VALUE default_rng", np.random.default_rng().random())
print("VALUE ssl", ssl.RAND_bytes(8).hex())
print("VALUE uuid4", uuid.uuid4())
print("VALUE secrets", secrets.token_hex(8))
print("VALUE tempfile", next(tempfile._get_candidate_names()))
sys.stdout.flush()
os._exit(3)
# %% a
print("OK")
