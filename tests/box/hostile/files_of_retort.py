# tries: find more of retort in the box than its own Python: build files, sources, state, other binaries
# why: what runs the box is the guest's to read; what made it is not, and object files tell the host's paths
# outside: host
import re
tops = ["/opt/retort"] if not OUTSIDE else [HOST["repository"]]
files = [os.path.join(d, f) for top in tops for d, _, names in os.walk(top) for f in names]
found("other files", [f for f in files if not re.search(r"\.py$|\.pyc$|\.abi3\.so$|/libraries\.txt$|/opt/retort/bin/python$", f)][:4])
found("the way to it in the mount table", not OUTSIDE and
      [l for l in open("/proc/self/mountinfo") if HOST["repository"] in l], maybe=True)
