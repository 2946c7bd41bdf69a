# tries: the promises of the contract about the inside: uid 1000, home, current directory, python
# outside: none
import getpass, os, pwd, socket, sys
assert os.getuid() == os.geteuid() == 1000, os.getuid()
assert os.environ["HOME"] == os.path.expanduser("~") == "/home/user"
assert os.getcwd() == "/mnt/data"
assert sys.version_info >= (3, 10)
assert os.access("/tmp", os.W_OK) and os.access("/home/user", os.W_OK) and os.access("/dev/shm", os.W_OK)
assert getpass.getuser() == pwd.getpwuid(1000).pw_name == "user", getpass.getuser()
assert socket.gethostbyname("localhost") == "127.0.0.1"
assert os.path.exists("/proc/self/status") and os.path.exists("/dev/null")
assert __name__ == "__main__"
print("OK")
