"""What the official Python client does against the playground."""

from kubernetes import client, config, watch

config.load_kube_config()
core = client.CoreV1Api()
apps = client.AppsV1Api()

print("nodes:", sorted(node.metadata.name for node in core.list_node().items))

pod = client.V1Pod(
    metadata=client.V1ObjectMeta(generate_name="from-python-", labels={"app": "py"}),
    spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="busybox")]),
)
name = core.create_namespaced_pod("default", pod).metadata.name
print("created:", name.startswith("from-python-"))

seen = []
stream = watch.Watch()
for event in stream.stream(core.list_namespaced_pod, "default", label_selector="app=py", timeout_seconds=60):
    seen.append(event["type"])
    if event["object"].status.phase == "Running":
        stream.stop()
print("watched:", seen[0], "first and to the end:", event["object"].status.phase)

core.patch_namespaced_pod(name, "default", {"metadata": {"labels": {"more": "yes"}}})
print("labels:", core.read_namespaced_pod(name, "default").metadata.labels["more"])

try:
    core.read_namespaced_pod("nothing", "default")
except client.ApiException as error:
    print("error:", error.status, error.reason)

page = core.list_node(limit=1)
rest = core.list_node(limit=1, _continue=page.metadata._continue)
print("pages:", page.items[0].metadata.name, rest.items[0].metadata.name, rest.metadata._continue)

core.delete_namespaced_pod(name, "default", grace_period_seconds=0)
print("deployments:", apps.list_deployment_for_all_namespaces().items)
