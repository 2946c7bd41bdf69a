# tries: move pages of other processes between memory nodes
# why: it tells where their memory lies
reach("move_pages", 279, 1, 0, 0, 0, 0, 0)
reach("migrate_pages", 256, 1, 0, 0, 0)
