"""Starts the scheduler and a real Prometheus, and prints what Prometheus sees:
with a token, with the token of somebody who may not, and without one."""

import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE = 60
ROOT = pathlib.Path(__file__).resolve().parents[2]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def kubectl(*arguments):
    return subprocess.run(
        ["kubectl", *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def get(url, token=None):
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(request, context=trusting, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def until(what, look):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            found = look()
            if found:
                return found
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit("in vain waited for " + what)


def query(prometheus, expression):
    status, reply = get(prometheus + "/api/v1/query?query=" + urllib.parse.quote(expression))
    if status != 200:
        # So it says while it starts.
        raise OSError("Prometheus answers %d: %s" % (status, reply))
    return {
        result["metric"].get("job", ""): result["value"][1]
        for result in json.loads(reply)["data"]["result"]
    }


def job(name, target, token):
    lines = [
        "- job_name: " + name,
        "  scheme: https",
        "  tls_config: {insecure_skip_verify: true}",
        "  static_configs: [{targets: ['%s']}]" % target,
    ]
    if token:
        lines.append("  authorization: {credentials_file: %s}" % token)
    return lines


def main(scratch, started):
    for account in ("prometheus", "curious"):
        kubectl("create", "serviceaccount", account)
        (scratch / account).write_text(kubectl("create", "token", account))
    kubectl("create", "clusterrole", "scraper", "--verb=get", "--non-resource-url=/metrics")
    kubectl("create", "clusterrolebinding", "scraper", "--clusterrole=scraper",
            "--serviceaccount=default:prometheus")

    target = "127.0.0.1:%d" % free_port()
    log = open(scratch / "scheduler.log", "w")
    started.append(subprocess.Popen(
        ["steersman", "run", "--kubeconfig", os.environ["KUBECONFIG"],
         "--bind-address", "127.0.0.1", "--secure-port", target.split(":")[1]],
        stdout=log, stderr=log))
    until("the scheduler", lambda: get("https://%s/readyz" % target)[0] == 200)
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=5")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    print("no token:", get("https://%s/metrics" % target)[0])
    status, reply = get("https://%s/metrics" % target, (scratch / "curious").read_text())
    print("another's token:", status, reply.strip())
    status, page = get("https://%s/metrics" % target, (scratch / "prometheus").read_text())
    print("its token:", status)
    checked = subprocess.run(["promtool", "check", "metrics"], input=page,
                             capture_output=True, text=True)
    print("promtool check metrics:", checked.returncode, checked.stdout + checked.stderr)

    port = free_port()
    rules = ROOT / "deploy/monitoring/alerts.yaml"
    config = ["global: {scrape_interval: 1s, evaluation_interval: 1s}",
              "rule_files: ['%s']" % rules, "scrape_configs:"]
    config += job("allowed", target, scratch / "prometheus")
    config += job("forbidden", target, scratch / "curious")
    config += job("anonymous", target, None)
    (scratch / "prometheus.yml").write_text("\n".join(config))
    log = open(scratch / "prometheus.log", "w")
    started.append(subprocess.Popen(
        ["prometheus", "--config.file", str(scratch / "prometheus.yml"),
         "--storage.tsdb.path", str(scratch / "data"),
         "--web.listen-address", "127.0.0.1:%d" % port],
        stdout=log, stderr=log))
    prometheus = "http://127.0.0.1:%d" % port
    # A scrape may take no more than its interval: on a busy machine one may fail.
    expected = {"allowed": "1", "anonymous": "0", "forbidden": "0"}
    up = until("the targets", lambda: [up for up in [query(prometheus, "up")] if up == expected])
    print("up:", json.dumps(up[0], sort_keys=True))
    scheduled = 'scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"}'
    counted = until("metrics", lambda: query(prometheus, scheduled))
    print("scheduled:", json.dumps(counted))
    groups = json.loads(get(prometheus + "/api/v1/rules")[1])["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    broken = [rule["name"] for rule in rules if rule["health"] == "err"]
    print("rules that cannot be evaluated:", broken if rules else "there are no rules")


with tempfile.TemporaryDirectory() as scratch:
    started = []
    try:
        main(pathlib.Path(scratch), started)
    except (SystemExit, subprocess.CalledProcessError) as failure:
        print(failure, getattr(failure, "stderr", ""))
        for log in pathlib.Path(scratch).glob("*.log"):
            print(log.name, log.read_text()[-3000:])
        sys.exit(1)
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(timeout=30)
