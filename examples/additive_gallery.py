"""A gallery under Paillier: three parties, of whom only the key owner can read anything.

    python examples/additive_gallery.py

Stations enroll people with the public key alone. A server keeps what they send and compares it with
probes that it may see (an access log, a product photo; not somebody's face: whoever sees a genuine
probe has the template). The key owner turns the encrypted scores into match or no match.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ciphervec import Client, paillier

ITEMS, DIMENSION, THRESHOLD = 120, 64, 0.9


def main() -> None:
    random = np.random.default_rng(3)
    items = random.standard_normal((ITEMS, DIMENSION))
    probe = items[17] + 0.1 * random.standard_normal(DIMENSION)

    keys = paillier.generate(bits=2048)  # 3072 unless asked for less
    security = keys.security()
    print(f"{keys.scheme}, {keys.bits} bits: {security['bits']}-bit security, {security['assumption']}")

    with tempfile.TemporaryDirectory() as folder:
        keys.save(Path(folder, "pair.key"), passphrase="correct horse battery staple")
        print(
            f"the secret key: {Path(folder, 'pair.key').stat().st_size} bytes in a file, under a passphrase"
        )

    # Two stations, each with the public key only.
    public = paillier.PublicKey.from_bytes(keys.public.to_bytes())
    sent = [public.encrypt_vectors(part, layout="lanes").to_bytes() for part in np.split(items, 2)]
    print(
        f"an item takes {sum(map(len, sent)) / ITEMS:,.0f} bytes, {public.lanes()} of them share a ciphertext"
    )

    # The server: it can read neither the gallery nor the scores.
    gallery = paillier.EncryptedVectors.append([public.vectors_from_bytes(part) for part in sent])
    answer = (gallery @ probe).to_bytes()
    print(f"{len(gallery)} encrypted scores in {len(answer):,} bytes, re-randomised")

    # The key owner.
    scores = keys.public.scores_from_bytes(answer)
    found = np.flatnonzero(keys.matches(scores, THRESHOLD))
    exact = items @ probe / np.linalg.norm(items, axis=1) / np.linalg.norm(probe)
    error = np.abs(keys.decrypt(scores) - exact).max()
    print(f"cosines within {error:.0e} of float64")
    print(f"matches: {found.tolist()}, as in the clear: {np.flatnonzero(exact >= THRESHOLD).tolist()}")

    # A collection keeps such a gallery with ids and metadata, under a key pair of its own, and
    # ranks.
    shelf = Client().create_collection("items", DIMENSION, mode="sealed-index", scheme="paillier", bits=2048)
    shelf.add([f"item-{i}" for i in range(ITEMS)], items)
    print(f"closest in a collection: {shelf.query(probe, n_results=1)['ids'][0][0]}")

    # Plain numbers too: a total that nobody but the owner learns.
    total = public.encrypt(1250) + public.encrypt(-310) + public.encrypt(99)
    print(f"1250 - 310 + 99 = {keys.decrypt(total)}")


if __name__ == "__main__":
    main()
