# tries: leave processes in every way there is, and end the session
# check: no_process_left
# mark: 86399.12
# within: 20
# prints: left them
import os, subprocess
subprocess.Popen(["sleep", "86399.12"], start_new_session=True)
subprocess.Popen("nohup setsid sleep 86399.12 >/dev/null 2>&1 &", shell=True)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "86399.12"])
        os._exit(0)
    os.wait()
print("left them")
