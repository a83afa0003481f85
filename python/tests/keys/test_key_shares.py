"""Shares of a key, from Python and the command line. That they are Shamir's is tested in Rust."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path

import pytest

from ciphervec import CorruptData, InvalidInput, Keys, KeyShare, StorageError, WrongKey
from program import Program


@pytest.fixture
def keys() -> Keys:
    return Keys.generate()


def test_any_two_of_three_give_the_key(keys: Keys, tmp_path: Path) -> None:
    shares = keys.split(2, 3)
    assert [(one.number, one.need, one.of, one.key_id) for one in shares] == [
        (number, 2, 3, keys.key_id) for number in (1, 2, 3)
    ]
    assert len({one.split for one in shares}) == 1
    for share in shares:
        share.save(str(tmp_path / f"{share.number}"))
        assert stat.S_IMODE((tmp_path / f"{share.number}").stat().st_mode) == 0o600
    assert Keys.combine([tmp_path / "1", shares[2]]) == keys
    assert Keys.combine([tmp_path / "3", str(tmp_path / "2")], key_id=keys.key_id) == keys
    with pytest.raises(StorageError, match="exists already"):
        shares[0].save(str(tmp_path / "1"))
    with pytest.raises(WrongKey, match="not 0123456789abcdef"):
        Keys.combine(shares, key_id="0123456789abcdef")


def test_a_share_of_another_split_is_named(keys: Keys) -> None:
    first, again = keys.split(2, 3), keys.split(2, 3)
    with pytest.raises(InvalidInput, match=r"share 3 is of split \w{32}.*share 1 of split \w{32}") as refused:
        Keys.combine([first[0], again[2]])
    assert first[0].split in str(refused.value)
    assert again[2].split in str(refused.value)


def test_too_few_and_the_same_one_twice_are_told(keys: Keys) -> None:
    shares = keys.split(3, 5)
    with pytest.raises(InvalidInput, match="needs 3 shares, got 2"):
        Keys.combine(shares[:2])
    with pytest.raises(InvalidInput, match="share 1 was given twice"):
        Keys.combine([shares[0], shares[1], shares[0]])
    with pytest.raises(InvalidInput, match="got 0"):
        Keys.combine([])


@pytest.mark.parametrize(("need", "of"), [(1, 3), (0, 3), (4, 3), (2, 256), (2.5, 3), (True, 3)])
def test_numbers_that_cannot_be_are_refused(keys: Keys, need: int, of: int) -> None:
    with pytest.raises(InvalidInput):
        keys.split(need, of)


def test_a_share_is_no_key_file_and_a_key_file_no_share(keys: Keys, tmp_path: Path) -> None:
    share, plain = tmp_path / "share", tmp_path / "plain"
    keys.split(2, 3)[0].save(str(share))
    keys.save(plain, allow_plaintext=True)
    with pytest.raises(InvalidInput, match="ciphervec keys combine"):
        Keys.load(share)
    with pytest.raises(CorruptData, match="a share of a key"):
        KeyShare.load(str(plain))
    data = bytearray(share.read_bytes())
    data[-40] ^= 1
    share.write_bytes(data)
    with pytest.raises(CorruptData, match="damaged"):
        KeyShare.load(str(share))


def test_a_share_is_not_printed_or_pickled(keys: Keys) -> None:
    share = keys.split(2, 3)[0]
    assert repr(share) == f"<ciphervec.KeyShare 1 of 3 of key {keys.key_id}, secret>"
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(share)


def test_the_command_line_splits_and_combines(tmp_path: Path) -> None:
    run = Program(tmp_path)
    run("keygen", "my.key", "--no-passphrase")
    made = run("keys", "split", "my.key", "--need", "2", "--of", "3").stdout
    assert "my.share-3" in made
    combine = ("keys", "combine", "my.share-1", "my.share-3", "--no-passphrase", "--out")
    assert "is that the id you noted" in run(*combine, "again.key").stdout
    key_id = Keys.load(tmp_path / "again.key").key_id
    assert "is that the id" not in run(*combine, "third.key", "--key-id", key_id).stdout
    assert Keys.load(tmp_path / "again.key") == Keys.load(tmp_path / "my.key")
    told = run("keys", "combine", "my.share-2", "--out", "more.key", "--no-passphrase", code=2).stderr
    assert "needs 2 shares, got 1" in told
    assert not (tmp_path / "more.key").exists()
    run("keys", "split", "my.key", "--need", "2", "--of", "3", code=5)
    assert "a share" not in run("keys", "list", "my.key").stdout
    listed = run("keys", "list", ".", "--json").stdout
    assert listed.count('"protection": "share"') == 3
