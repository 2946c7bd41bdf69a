# tries: find the host's secret in its own memory
# why: a box is a fork; whatever the zygote ever held is in it (architecture: no secrets in the zygote)
import hashlib, re
pattern = re.compile(rb"RETORT_TEST_SECRE[T]=([0-9a-f]{32})")  # does not match itself
hits, scanned = [], 0
memory = open("/proc/self/mem", "rb", buffering=0)
for line in open("/proc/self/maps").read().splitlines():
    span, rights = line.split()[:2]
    start, end = (int(x, 16) for x in span.split("-"))
    if "r" not in rights or "[v" in line or end - start > 1 << 28:
        continue
    try:
        memory.seek(start)
        chunk = memory.read(end - start)
    except (OSError, ValueError, OverflowError):
        continue
    scanned += len(chunk)
    hits += [line.split()[-1] for m in pattern.finditer(chunk)
             if hashlib.sha256(m[1]).hexdigest() == HOST["secret_sha256"]]
    del chunk
found(f"the secret in {scanned >> 20} MB", hits)
