"""Makes collections as release 0.1 made them: no incarnation, no state."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import httpx

import ciphervec._native as _native
from ciphervec import Client, HttpClient, IndexSpec, Owner, PersistentClient
from ciphervec.collections.batch import EVALUATION, WriteBatch
from ciphervec.collections.spec import Choices
from ciphervec.http.frame import encode


def create(client: Client, choices: Choices) -> None:
    """An empty one, on the client's server or in its folder, under its keys."""
    new = choices.spec
    name = new.collection
    spec = IndexSpec(name, new.dimension, new.metric, new.mode, new.precision, new.scheme, new.bits)
    owner = Owner(client.keys, spec)
    kept = json.dumps({"filterable": choices.filterable}).encode()
    settings = owner.seal_records(bytes(16), ["ciphervec collection settings"], [kept])
    described = {
        "format": 2,
        "spec": base64.b64encode(spec.to_bytes()).decode(),
        "scheme": spec.stored_scheme,
        "key_id": owner.key_id,
        "epoch": 0,
        "settings": base64.b64encode(settings.to_bytes()).decode(),
    }
    meta, beside = json.dumps(described).encode(), {EVALUATION: owner.evaluation().to_bytes()}
    if isinstance(client, HttpClient):
        body = encode(WriteBatch(meta=meta, attachments=beside))
        headers = {"Content-Type": "application/octet-stream"}
        address = f"{client.url}/v1/collections/{name}"
        httpx.put(address, content=body, headers=headers, trust_env=False).raise_for_status()
        return
    assert isinstance(client, PersistentClient)
    store = _native.Store.create(os.fspath(Path(client.path) / name), meta)
    store.commit(attachments=beside)
    store.close()
