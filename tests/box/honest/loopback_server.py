# tries: an HTTP server and its client on loopback
import http.server
import threading
import urllib.request
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
open("page.txt", "w").write("served")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/page.txt") as answer:
    assert answer.read() == b"served"
server.shutdown()
print("OK")
