# tries: change the root of the mount namespace
# why: it was how the box was made, and must be shut behind it
reach("pivot_root", 155, b"/", b"/")
reach("chroot", 161, b"/")
