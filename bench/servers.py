"""Servers, and what their clients measure: retort's, and nginx for moving files.

Each is alone on its port, with a directory of its own, and is gone after stop(). The client is
http_bench, the same for both.
"""

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request

NGINX = """
daemon off;
worker_processes 1;
pid {dir}/pid;
error_log {dir}/log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    client_max_body_size 0;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {dir}/files;
        location / {{ dav_methods PUT DELETE; }}
    }}
}}
"""
PATIENCE_S = 60
TMPFS = "/dev/shm"  # where nginx has its files; retort's workspaces are tmpfs too


class Client:
    """http_bench, for one server."""

    def __init__(self, build, port, token=None):
        self.command = [os.path.join(build, "bench", "http_bench"), "--port", str(port)]
        self.command += ["--token", token] if token else []

    def __call__(self, verb, paths, **options):
        command = self.command + [verb]
        for path in [paths] if isinstance(paths, str) else paths:
            command += ["--path", path]
        for name, value in options.items():
            command += ["--" + name, str(value)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        answer = json.loads(done.stdout)
        if answer["wrong"]:
            raise SystemExit(f"bench: {verb} {paths}: {answer['wrong']} wrong answers")
        return answer


class Retort:
    """`retort serve`, as it comes, but for a journal that is gone afterwards."""

    def __init__(self, build, env, directory):
        self.log = open(os.path.join(directory, "retort.log"), "w")
        command = [os.path.join(build, "retort"), "serve", "--listen", "127.0.0.1:0"]
        command += ["--state", os.path.join(directory, "state")]
        self.p = subprocess.Popen(
            command, env=env, text=True, stdout=subprocess.PIPE, stderr=self.log
        )
        line = self.p.stdout.readline()
        found = re.search(r"(http://[^/]*:(\d+))/\?token=(\S+)", line)
        if not found:
            raise SystemExit(f"bench: retort serve did not become ready; see {self.log.name}")
        self.url, port, self.token = found.groups()
        self.client = Client(build, port, self.token)

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + self.token, "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def session(self, **body):
        """A new one's path, after its first cell."""
        path = "/v1/sessions/" + self.call("POST", "/v1/sessions", body)["id"]
        self.call("POST", path + "/cells", {"code": "1+1"})
        return path

    def delete(self, path):
        self.call("DELETE", path)

    def stop(self):
        self.p.terminate()
        status = self.p.wait(timeout=PATIENCE_S)
        self.log.close()
        if status != 0:
            raise SystemExit(f"bench: retort serve ended with status {status}")


class Nginx:
    """Serves and takes files in a directory."""

    def __init__(self, build, directory, port):
        os.mkdir(os.path.join(directory, "files"))
        os.chmod(directory, 0o711)  # its worker is another user when root starts it
        os.chmod(os.path.join(directory, "files"), 0o777)
        conf = os.path.join(directory, "conf")
        with open(conf, "w") as f:
            f.write(NGINX.format(dir=directory, port=port))
        log = os.path.join(directory, "log")
        path = "/usr/sbin/nginx"
        if not os.path.exists(path):
            raise FileNotFoundError("nginx is not installed")
        self.p = subprocess.Popen([path, "-e", log, "-c", conf], stderr=subprocess.DEVNULL)
        self.client = Client(build, port)
        self.url = f"http://127.0.0.1:{port}"
        self.wait()

    def wait(self):
        for _ in range(100):
            try:
                urllib.request.urlopen(self.url, timeout=PATIENCE_S).close()
                return
            except urllib.error.HTTPError:
                return  # it answers
            except OSError:
                time.sleep(0.05)
        raise SystemExit("bench: nginx did not become ready")

    def delete(self, path):
        request = urllib.request.Request(self.url + path, method="DELETE")
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()

    def stop(self):
        self.p.terminate()
        self.p.wait(timeout=PATIENCE_S)
