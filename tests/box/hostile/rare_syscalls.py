# tries: calls that are rarely audited and never needed in a cell
# why: an allow-list is what is on it
for name, number, *args in (("lookup_dcookie", 212, 0, 0, 0), ("vhangup", 153), ("nfsservctl", 180),
                            ("remap_file_pages", 216, -1, 0, 0, 0, 0), ("kcmp", 312, 1, 1, 0, 0, 0),
                            ("memfd_secret", 447, -1), ("lsm_set_self_attr", 460, -1, 0, 0, 0),
                            ("process_mrelease", 448, -1, 0), ("get_kernel_syms", 177), ("ustat", 136, -1, -1)):
    if name == "vhangup" and OUTSIDE:
        continue
    reach(name, number, *args, maybe=name not in ("kcmp", "remap_file_pages"))
