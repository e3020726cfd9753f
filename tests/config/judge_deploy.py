"""deploy/ and the Dockerfile speak of settings, pages, metrics and libraries that there are."""
import os
import re
import subprocess
import sys

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MILLPOND = os.environ["MILLPOND"]
HOGLAKED = os.path.join(os.path.dirname(MILLPOND), "hoglaked")
MIB = 1 << 20
UNITS = {"Mi": MIB, "Gi": 1 << 30}
counts = {True: 0, False: 0}


def check(what, condition, detail=""):
    counts[bool(condition)] += 1
    if not condition:
        print("FAILED %s %s" % (what, detail))


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def output(arguments, **environment):
    done = subprocess.run(arguments, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def objects(path):
    return {document["kind"]: document for document in yaml.safe_load_all(read(path))}


def variables(container):
    """What the manifest gives; what Kubernetes would fill in is made up."""
    return {item["name"]: item.get("value", "pod-0") for item in container["env"]}


def check_pods(path, kind, program, paths, port):
    """What both manifests have in common. Gives the workload and its container."""
    found = objects(path)
    workload = found[kind]["spec"]
    container = workload["template"]["spec"]["containers"][0]
    names = set(variables(container))
    known = set(re.findall(r"^(?:\| `)?([A-Z][A-Z0-9_]+)", program, re.M))
    check("%s names settings that there are" % path, names <= known, names - known)
    check("%s asks pages that there are" % path,
          {container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} == paths)
    check("%s has the program's port" % path,
          container["ports"] == [{"name": "http", "containerPort": port}]
          and workload["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(port)
          and found["Service"]["spec"]["ports"] == [{"name": "http", "port": port}])
    labels = workload["template"]["metadata"]["labels"]
    check("%s selects its own pods" % path,
          labels == workload["selector"]["matchLabels"] == found["Service"]["spec"]["selector"])
    return workload, container


def check_millpond():
    _, settings = output([MILLPOND, "config", "--markdown"])
    workload, container = check_pods("deploy/millpond.yaml", "StatefulSet", settings,
                                     {"/healthz", "/readyz"}, 8000)
    given = variables(container)
    code, text = output([MILLPOND, "config"], **given)
    check("millpond takes the manifest's settings", code == 0, text)
    check("REPLICA_COUNT is the number of replicas", given["REPLICA_COUNT"] == str(workload["replicas"]))
    limit = container["resources"]["limits"]["memory"]
    flush = int(re.search(r"^\| `FLUSH_SIZE` \| (\d+)", settings, re.M)[1])
    check("the limit is what the README promises, and a quarter",
          int(limit[:-2]) * UNITS[limit[-2:]] >= 1.25 * (1.5 * flush + 64e6), limit)


def check_hoglaked():
    _, settings = output([HOGLAKED, "--settings"])
    _, container = check_pods("deploy/hoglaked.yaml", "Deployment", settings, {"/livez", "/readyz"}, 8080)
    code, text = output([HOGLAKED, "--settings"], **variables(container))
    check("hoglaked takes the manifest's settings", code == 0, text)
    check("compaction has a directory", container["volumeMounts"][0]["mountPath"] == "/tmp")


def metric_labels(path):
    """Each metric's own labels, from a table of metrics."""
    found = {}
    for line in re.findall(r"^MP_\w+\((.*)\)$", read(path), re.M):
        texts = re.findall(r'"([^"]*)"|\bNULL\b', line)
        name = texts[0]
        found[name] = set(filter(None, texts[1].split(",")))
    return found


def check_alerts():
    metrics = {**metric_labels("src/obs/metrics.def"), **metric_labels("src/server/metrics.def")}
    everywhere = {"pipeline", "broker_source", "pod"}
    for rule in (rule for group in yaml.safe_load(read("deploy/alerts.yaml"))["groups"] for rule in group["rules"]):
        expression = rule["expr"]
        names = {re.sub("_(count|sum|bucket)$", "", name)
                 for name in re.findall(r"\b(?:millpond|hoglake)_\w+", expression)}
        check("%s asks metrics that there are" % rule["alert"], names and names <= set(metrics), names)
        labels = set(re.findall(r"\w+", " ".join(re.findall(r"by \((.*?)\)", expression))))
        labels |= set(re.findall(r"(\w+)=~?\"", expression))
        labels |= set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        own = set.union(everywhere, *(metrics.get(name, set()) for name in names))
        check("%s asks labels that they have" % rule["alert"], labels <= own, labels - own)


def check_image():
    """The packages of the Dockerfile hold every library that the programs are linked with."""
    listed = set(re.search(r"--no-install-recommends ca-certificates(.*?)&& rm", read("Dockerfile"),
                           re.S)[1].replace("\\", " ").split())
    for program in (MILLPOND, HOGLAKED):
        _, needed = output(["readelf", "-d", program], PATH=os.environ["PATH"])
        paths = dict(re.findall(r"^\s*(\S+) => (\S+)", output(["ldd", program], PATH=os.environ["PATH"])[1], re.M))
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", needed):
            path = os.path.realpath(paths.get(library, "/lib64/" + library))
            _, owner = output(["dpkg", "-S", "*/" + os.path.basename(path)], PATH=os.environ["PATH"])
            packages = {line.split(":")[0] for line in owner.splitlines()}
            check("%s is in the image for %s" % (library, os.path.basename(program)),
                  packages & (listed | {"libc6"}), packages)


def main():
    check_millpond()
    check_hoglaked()
    check_alerts()
    check_image()
    print("%d passed, %d failed" % (counts[True], counts[False]))
    return 1 if counts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
