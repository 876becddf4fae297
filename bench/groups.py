"""Completing many instance groups takes time linear in their number: 5,000 against 1,250 and 2,500, in one run."""

from __future__ import annotations

import gc
import time

from protokube.config.complete import complete
from protokube.spec.parse import parse

SIZES = (1250, 2500, 5000)


def text(groups: int) -> str:
    head = """apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: many.example.com}
spec: {cloud: aws, zones: [us-east-1a, us-east-1b, us-east-1c], podCIDR: 100.96.0.0/11}
"""
    group = """---
apiVersion: protokube.io/v1alpha1
kind: InstanceGroup
metadata: {{name: nodes-{0}}}
spec: {{role: Node, minSize: 1, maxSize: 1, machineType: m7i.large, nodeLabels: {{pool: p{0}}}}}
"""
    return head + "".join(group.format(index) for index in range(groups))


def seconds(source: str) -> float:
    gc.collect()
    start = time.perf_counter()
    complete(parse([("many.yaml", source)]))
    return time.perf_counter() - start


def main() -> bool:
    texts = {size: text(size) for size in SIZES}
    best = {size: min(seconds(texts[size]) for _ in range(3)) for size in SIZES}
    each = {size: best[size] / size * 1e6 for size in SIZES}
    ratio = each[SIZES[-1]] / each[SIZES[0]]
    fine = ratio <= 1.5
    print("groups: parse and complete, best of 3")
    for size in SIZES:
        print(f"  {size:>5} groups {best[size]:5.2f} s, {each[size]:4.0f} us each")
    print(
        f"  a group among {SIZES[-1]} costs {ratio:.2f} x one among {SIZES[0]}; linear is 1{'' if fine else '  OVER'}"
    )
    return fine


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
