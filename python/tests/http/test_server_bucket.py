"""The shipped server over a bucket, through its command line, against an S3 server of this machine:
what it says, and what it keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from ciphervec import HttpClient, Keys
from ciphervec.http import LocalServer
from network import D
from services import s3_bucket


@pytest.fixture(scope="module", autouse=True)
def bucket() -> Iterator[None]:
    with s3_bucket():
        yield


def test_it_says_that_it_listens_and_answers_every_endpoint(keys: Keys, rows: np.ndarray) -> None:
    with LocalServer("s3://bucket/one") as server:
        with HttpClient(server.url, keys=keys, state=None) as client:
            books = client.create_collection("books", D, mode="sealed")
            books.add(list(range(20)), rows[:20], documents=[f"page {row}" for row in range(20)])
            # By now the server looks at the bucket again, whoever asks first.
            time.sleep(2.1)
            for path in (
                "/healthz",
                "/readyz",
                "/v1",
                "/v1/collections",
                "/metrics",
                "/v1/collections/books",
            ):
                answer = httpx.get(server.url + path, trust_env=False)
                assert answer.status_code == 200, (path, answer.text)
            assert httpx.get(f"{server.url}/v1/collections/no", trust_env=False).status_code == 404
            assert books.query(rows[:20], 1)["ids"] == [[row] for row in range(20)]
            base = f"{server.url}/v1/collections/books"
            assert httpx.put(f"{base}/snapshots/a", trust_env=False).status_code == 201
            books.delete([0])
            assert httpx.post(f"{base}/compact", trust_env=False).status_code == 200
            assert httpx.post(f"{base}/verify", trust_env=False).json()["sound"]
            copy = httpx.post(f"{base}/snapshots/a/restore", json={"into": "copy"}, trust_env=False)
            assert copy.status_code == 201, copy.text
        assert "panicked" not in server.log
    with LocalServer("s3://bucket/one") as server, HttpClient(server.url, keys=keys, state=None) as client:
        assert client.list_collections() == ["books", "copy"]
        books = client.get_collection("books")
        assert books.query(rows[1:20], 1)["ids"] == [[row] for row in range(1, 20)]
        assert books.get([5])["documents"] == ["page 5"]


def test_a_bucket_that_is_not_there_is_not_ready() -> None:
    with pytest.raises(Exception, match="did not start"):
        LocalServer("s3://nowhere/one", wait=3)
