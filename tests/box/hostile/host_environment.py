# tries: find environment variables of the host
# why: that is where tokens and keys are
found("the secret in os.environ", os.environ.get("RETORT_TEST_SECRET"))
names = open("/proc/self/environ", "rb").read()
found("the secret in /proc/self/environ", b"RETORT_TEST_SECRET" in names)
import subprocess
seen = subprocess.run(["env"], capture_output=True).stdout
found("the secret in a child's environment", b"RETORT_TEST_SECRET" in seen)
