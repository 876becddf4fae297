"""One process of a crew: opens a store, then does what it is told, line by line.

Each order is a JSON line on stdin, each result a JSON line on stdout. It imports only what ships.
"""

from __future__ import annotations

import itertools
import json
import sys

from protokube.store import AlreadyThere, Changed, Store
from protokube.store.open import open_store


def create(store: Store, path: str, text: str) -> str:
    """Try to be the one who creates the path."""
    try:
        store.create(path, text.encode())
    except AlreadyThere:
        return "lost"
    return "won"


def count(store: Store, path: str, text: str) -> str:
    """Add one to the number at a path, as often as the text says."""
    losses = 0
    for _ in range(int(text)):
        while True:
            seen = store.read(path)
            try:
                store.replace(path, str(int(seen.data) + 1).encode(), seen.version)
                break
            except Changed:
                losses += 1
    return str(losses)


def read(store: Store, path: str, text: str) -> str:
    return store.read(path).data.decode() + text


def list_paths(store: Store, path: str, text: str) -> str:
    return " ".join(store.list_paths(path)) + text


def replace_forever(store: Store, path: str, text: str) -> str:
    """Replace the content with one of two long ones, until killed."""
    sizes = int(text)
    while True:
        for letter in (b"a", b"b"):
            store.replace(path, letter * sizes, store.read(path).version)


def create_forever(store: Store, path: str, text: str) -> str:
    """Create file after file of one long content, until killed."""
    for number in itertools.count():
        store.create(f"{path}/{number}", b"c" * int(text))
    return "never"


ORDERS = {each.__name__: each for each in (create, count, read, list_paths, replace_forever, create_forever)}


def say(what: str) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    store = open_store(sys.argv[1])
    say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        say(ORDERS[order["do"]](store, order["path"], order["text"]))
    store.close()


if __name__ == "__main__":
    main()
