"""Parts of the conformance suite that have a name, as regular expressions over the names of its tests."""

from __future__ import annotations

WHOLE = r"\[Conformance\]"
NEED_PODS = r"AdmissionWebhook|ConversionWebhook|Aggregator|Garbage collector|ResourceQuota|Namespaces|OrderedNamespace"
API = rf"\[sig-api-machinery\](?!.*(?:{NEED_PODS})).*\[Conformance\]"
"""What speaks to API servers alone: no pod of it can be lost with a machine."""
MACHINERY = r"\[sig-api-machinery\].*\[Conformance\]"
SUBSET = "|".join(
    (
        r"Watchers should (?:observe add|be able to restart|receive events on concurrent)",
        r"AdmissionWebhook.*should (?:be able to deny pod|mutate configmap)",
        r"CustomResourceDefinition resources.*should include custom resource definition",
        r"Aggregator Should be able to support",
        r"Garbage collector should (?:delete RS created|not be blocked)",
        r"ValidatingAdmissionPolicy.*should validate against a Deployment",
        r"API chunking should (?:return chunks|support continue)",
    )
)
PARTS = {"api": API, "machinery": MACHINERY, "subset": SUBSET, "whole": WHOLE}
