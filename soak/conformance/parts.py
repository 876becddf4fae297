"""Named parts of the conformance suite, as regular expressions over the names of its tests."""

from __future__ import annotations

CONFORMANCE = r".*\[Conformance\]"
WHOLE = r"\[Conformance\]"
NEED_PODS = "AdmissionWebhook|ConversionWebhook|Aggregator|Garbage collector|ResourceQuota|Namespace"
ELSEWHERE = (
    r"\[sig-auth\] (?:Certificates API|SubjectReview)",
    r"\[sig-instrumentation\] Events",
    r"\[sig-network\] (?:Ingress|ServiceCIDR|Endpoints should|EndpointSlice should support creating)",
    r"\[sig-network\] Services should (?:complete a service status|delete a collection|find a service)",
    r"\[sig-node\] (?:\[DRA\] CRUD|Lease|PodTemplates|RuntimeClass should support)",
    r"\[sig-node\] (?:ConfigMap|Secrets) should (?:run through|fail to create|update ConfigMap|patch)",
    r"\[sig-storage\] (?:CSIInlineVolumes|CSINodes|CSIStorageCapacity|StorageClasses|Volume\w+)",
)
API = rf"(?:\[sig-api-machinery\](?!.*(?:{NEED_PODS}))|{'|'.join(ELSEWHERE)}){CONFORMANCE}"
"""Tests that only use the API server: they have no pods that could be lost with a machine."""
MACHINERY = rf"\[sig-api-machinery\]{CONFORMANCE}"
CHOSEN = (
    r"\[sig-api-machinery\] Watchers",
    r"\[sig-api-machinery\] Aggregator",
    r"\[sig-api-machinery\] AdmissionWebhook.*should (?:be able to deny pod|mutate custom resource \[)",
    r"\[sig-api-machinery\] CustomResourceConversionWebhook.*from CR v1",
    r"\[sig-api-machinery\] CustomResourceDefinition (?:Watch|resources)",
    r"\[sig-api-machinery\] Discovery",
    r"\[sig-api-machinery\] FieldValidation.*typed object",
    r"\[sig-api-machinery\] Garbage collector should (?:delete RS|not be blocked)",
    r"\[sig-api-machinery\] ResourceQuota.*life of a pod",
    r"\[sig-api-machinery\] ValidatingAdmissionPolicy.*should validate",
    r"\[sig-api-machinery\] (?:Servers|server)",
    r"\[sig-node\] (?:ConfigMap|Secrets)",
    r"\[sig-storage\] (?:ConfigMap|Secrets) (?:updates|should be immutable|.*from pods in volume \[)",
    r"\[sig-network\] Services should (?:serve|be able to create a functioning NodePort|complete|delete a coll)",
    r"\[sig-network\] EndpointSlice should (?:create E|support creating)",
    r"\[sig-network\] DNS should provide DNS for (?:services|the cluster|pods for Hostname)",
    r"\[sig-network\] (?:API Server|HostPort)",
    r"\[sig-auth\] ServiceAccounts.*OIDC discovery",
    r"\[sig-apps\] Deployment (?:RollingUpdate|Deployment|should run)",
    r"\[sig-apps\] StatefulSet.*should (?:have a working scale|list, patch)",
    r"\[sig-apps\] Job should (?:delete a job|manage the lifecycle|create pods for an Indexed)",
)
SUBSET = rf"(?!.*\[Slow\])(?:{'|'.join(CHOSEN)}){CONFORMANCE}"
"""A quarter of the suite, in some minutes: part of the end-to-end tests."""
PARTS = {"api": API, "machinery": MACHINERY, "subset": SUBSET, "whole": WHOLE}
