# tries: load another kernel, load modules, reboot, speak to the hardware's ports
# why: the whole machine at once
reach("kexec_load", 246, 0, -1, -1, 0, maybe=True)
reach("kexec_file_load", 320, -1, -1, 0, 0, 0, maybe=True)
reach("init_module", 175, 0, 0, b"", maybe=True)
reach("finit_module", 313, -1, b"", 0, maybe=True)
reach("delete_module", 176, b"retort-test-none", 0, maybe=True)
reach("reboot", 169, 1, 2, 3, 0)  # wrong magic numbers
reach("iopl", 172, -1, maybe=True)  # the machine's ports, below the kernel
reach("ioperm", 173, -1, -1, 1, maybe=True)
