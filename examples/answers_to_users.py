"""A web application that answers its users from an encrypted collection: FastAPI, a budget a user, and who opens what.

    python examples/answers_to_users.py

The application holds the keys and asks; whoever stores the rows holds neither. Its users see ids, texts and scores, so every
query names `audience="others"`: what they get is a function of rows and query alone, and carries no noise of a key.
A result without an audience does not leave by accident: FastAPI can't turn it into JSON.
Scores still tell of vectors, so each user has so many queries a day, counted where a restart finds them.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.testclient import TestClient
from pydantic import BaseModel, Field

import ciphervec

DIMENSION, A_DAY = 64, 5
USERS = {
    hashlib.sha256(token.encode()).hexdigest(): name
    for token, name in (("s3cret-ann", "ann"), ("s3cret-bo", "bo"))
}


class Budget:
    """Queries of each user and day, on the disk before anything is answered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._open() as table:
            table.execute(
                "CREATE TABLE IF NOT EXISTS used (user TEXT, day TEXT, count INT, PRIMARY KEY (user, day))"
            )

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)

    def take(self, user: str) -> int:
        """How many are left after this one. Raises HTTPException when there is none."""
        with self._open() as table:
            (count,) = table.execute(
                "INSERT INTO used VALUES (?, date('now'), 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count",
                (user,),
            ).fetchone()
        if count > A_DAY:
            raise HTTPException(429, f"{user} has asked {A_DAY} questions today")
        return A_DAY - int(count)


class Question(BaseModel):
    vector: list[float] = Field(min_length=DIMENSION, max_length=DIMENSION)
    results: int = Field(default=3, ge=1, le=10)


class Answer(BaseModel):
    ids: list[int]
    scores: list[float]
    documents: list[str]
    queries_left: int


def user_of(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> str:
    """Tokens are compared as hashes, so that no time tells how much of one was right."""
    user = USERS.get(hashlib.sha256(credentials.credentials.encode()).hexdigest())
    if user is None:
        raise HTTPException(401, "unknown token")
    return user


def application(folder: Path, keys: ciphervec.Keys) -> FastAPI:
    @asynccontextmanager
    async def life(app: FastAPI) -> Any:
        with ciphervec.PersistentClient(folder / "db", keys) as client:
            app.state.notes = client.get_collection("notes")
            yield

    app, budget = FastAPI(lifespan=life), Budget(folder / "budget.sqlite")

    @app.post("/search")
    def search(question: Question, user: Annotated[str, Depends(user_of)], request: Request) -> Answer:
        left = budget.take(user)
        found = request.app.state.notes.query(
            np.array(question.vector, np.float32),
            question.results,
            include=["scores", "documents"],
            audience="others",
        )
        # Two decimals are enough to read by, and say less of vectors.
        scores = [round(score, 2) for score in found["scores"][0]]
        return Answer(ids=found["ids"][0], scores=scores, documents=found["documents"][0], queries_left=left)

    @app.post("/forgotten")
    def forgotten(question: Question, user: Annotated[str, Depends(user_of)], request: Request) -> Any:
        budget.take(user)
        return request.app.state.notes.query(np.array(question.vector, np.float32), question.results)

    return app


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, keys = Path(name), ciphervec.Keys.generate()
        vectors = np.random.default_rng(1).standard_normal((500, DIMENSION)).astype(np.float32)
        with ciphervec.PersistentClient(folder / "db", keys) as client:
            notes = client.create_collection("notes", DIMENSION)
            notes.add(range(500), vectors, documents=[f"note {i}" for i in range(500)])
        for _ in range(2):  # the second time as after a restart
            run(application(folder, keys), vectors)


def run(app: FastAPI, vectors: np.ndarray) -> None:
    def questions() -> Iterator[dict[str, Any]]:
        yield from ({"vector": vector.tolist()} for vector in vectors)

    ann, bo = ({"Authorization": f"Bearer s3cret-{name}"} for name in ("ann", "bo"))
    with TestClient(app, raise_server_exceptions=False) as web:
        for question, _ in zip(questions(), range(3), strict=False):
            reply = web.post("/search", json=question, headers=ann)
            print("ann:", reply.status_code, reply.text)
        reply = web.post("/forgotten", json=next(questions()), headers=bo)
        print("without an audience:", reply.status_code, reply.text)
        print("without a token:", web.post("/search", json=next(questions())).status_code)


if __name__ == "__main__":
    main()
