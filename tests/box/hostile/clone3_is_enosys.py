# tries: clone3, whose flags lie in memory where a filter cannot look
# why: it must be ENOSYS, so that glibc falls back to clone; EPERM breaks threads
result, error = syscall(435, 0, 0)
if result == -1 and error == errno.ENOSYS:
    refused("clone3", "ENOSYS")
else:
    escaped("clone3", errno.errorcode.get(error, result))
import threading, subprocess
done = []
thread = threading.Thread(target=lambda: done.append(1))
thread.start()
thread.join()
if not done or subprocess.run(["true"]).returncode:
    wrong("threads and children after ENOSYS")
