# tries: userfaultfd
# why: it stops the kernel in the middle of a copy for as long as the guest likes: every race is won
reach("userfaultfd", 323, 0x80001)  # O_CLOEXEC | UFFD_USER_MODE_ONLY
reach("userfaultfd for the kernel", 323, 0)
