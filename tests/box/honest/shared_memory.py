# tries: multiprocessing.shared_memory with a numpy array, written by a child
# why: /dev/shm must be there
from multiprocessing import Process, shared_memory
import numpy as np
block = shared_memory.SharedMemory(create=True, size=8 * 1000)
def fill(name):
    other = shared_memory.SharedMemory(name)
    np.ndarray((1000,), dtype=np.float64, buffer=other.buf)[:] = np.arange(1000)
    other.close()
child = Process(target=fill, args=(block.name,))
child.start()
child.join()
assert child.exitcode == 0
assert np.ndarray((1000,), dtype=np.float64, buffer=block.buf).sum() == 499500
block.close()
block.unlink()
print("OK")
