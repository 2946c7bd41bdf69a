# tries: watch whole file systems
# why: fanotify sees, and may refuse, what every process of the machine opens
reach("fanotify_init", 300, 0, 0)
reach("fanotify_mark", 301, -1, 1, 0, -1, 0)
