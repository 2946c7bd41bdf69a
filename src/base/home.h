/* home: the home directory of whoever runs us. */
#pragma once

/* $HOME, or what the system's list of users says; NULL where neither is an absolute path. */
const char *home_directory(void);
