# tries: load BPF programs and maps
# why: the verifier has been the way to the kernel year after year
reach("bpf(MAP_CREATE)", 321, 0, b"\x02\0\0\0\x04\0\0\0\x08\0\0\0\x01\0\0\0" + b"\0" * 112, 72)
reach("bpf(bogus)", 321, 9999, b"\0" * 128, 128)
