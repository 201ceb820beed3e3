"""Packs a tree of files, unpacks it elsewhere, and proves that both are the same."""

import hashlib
import os
import pathlib
import random
import tarfile
import time


def fingerprint(root):
    """A digest over names and contents of a tree."""
    digest = hashlib.sha256()
    for directory, directories, files in os.walk(root):
        directories.sort()
        for name in sorted(files):
            path = pathlib.Path(directory, name)
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


original = pathlib.Path("/tmp/original")
chance = random.Random(11)
words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz", k=chance.randrange(2, 10))) for _ in range(500)]
size = 0
for number in range(60):
    path = original / f"chapter-{number % 6}" / f"page-{number:03}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    size += path.write_bytes(b" ".join(chance.choices(words, k=2_000)))

for suffix in ["gz", "bz2", "xz"]:
    start = time.perf_counter()
    packed = pathlib.Path(f"/tmp/tree.tar.{suffix}")
    with tarfile.open(packed, f"w:{suffix}") as archive:
        archive.add(original, "tree")
    with tarfile.open(packed) as archive:
        archive.extractall(f"/tmp/{suffix}")
    same = fingerprint(original) == fingerprint(f"/tmp/{suffix}/tree")
    elapsed = (time.perf_counter() - start) * 1e3
    print(f"{suffix:>4}: {size:,} -> {packed.stat().st_size:,} bytes, {'same' if same else 'DIFFERENT'}, {elapsed:.0f} ms")
    if not same:
        raise SystemExit(1)
