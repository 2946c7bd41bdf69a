# tries: subprocess: pipes, exit status, a missing program, time-out, shell pipelines, another python
import subprocess
import sys
assert subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout == "hi\n"
assert subprocess.run("seq 1 5 | wc -l", shell=True, capture_output=True, text=True).stdout.strip() == "5"
assert subprocess.run(["sh", "-c", "exit 7"]).returncode == 7
try:
    subprocess.run(["no-such-program"])
    raise SystemExit("no error")
except FileNotFoundError:
    pass
try:
    subprocess.run(["sleep", "30"], timeout=0.5)
    raise SystemExit("no time-out")
except subprocess.TimeoutExpired:
    pass
both = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert both.communicate(b"x" * 1_000_000)[0] == b"x" * 1_000_000
out = subprocess.run([sys.executable, "-c", "import os; print(os.getcwd(), 6 * 7)"], capture_output=True, text=True)
assert out.stdout.split()[1] == "42", out
print("OK")
