# tries: performance counters
# why: they measure other tenants, and have been a source of kernel bugs
reach("perf_event_open", 298, b"\0" * 128, 0, -1, -1, 0)
