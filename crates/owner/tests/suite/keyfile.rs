//! Key files: what is written can be read by whoever has the passphrase, and every refusal is the one it should be.

use ciphervec_owner::protect::keyfile::{self, KeyfileError, Label, MIN_LOG_N, Protection, Sort};
use std::error::Error;
use std::fs;

type Outcome = Result<(), Box<dyn Error>>;

const MASTER: [u8; 32] = *b"an example of a master secret...";
const KEY_ID: [u8; 16] = [0xab; 16];
const CHEAP: Protection<'_> = Protection::PassphraseWithCost("open sesame", MIN_LOG_N);

#[test]
fn a_key_comes_back_under_its_passphrase_and_no_other() -> Outcome {
    let bytes = keyfile::encode(&MASTER, &KEY_ID, CHEAP)?;
    let (master, key_id) = keyfile::decode(&bytes, Some("open sesame"))?;
    assert_eq!((*master, key_id), (MASTER, KEY_ID));
    assert!(
        !bytes.windows(8).any(|window| window == &MASTER[..8]),
        "the master is not in the file"
    );
    let refused = keyfile::decode(&bytes, Some("open sesame ")).err();
    assert!(matches!(refused, Some(KeyfileError::WrongPassphrase { .. })), "{refused:?}");
    let refused = keyfile::decode(&bytes, None).err();
    assert!(matches!(refused, Some(KeyfileError::PassphraseNeeded { .. })), "{refused:?}");
    let label = Label { key_id: KEY_ID, sort: Sort::Master, encrypted: true, log_n: MIN_LOG_N };
    assert_eq!(keyfile::label(&bytes)?, label);
    assert_ne!(*bytes, *keyfile::encode(&MASTER, &KEY_ID, CHEAP)?, "salt and nonce are fresh");
    Ok(())
}

#[test]
fn damage_is_told_from_a_wrong_passphrase() -> Outcome {
    let bytes = keyfile::encode(&MASTER, &KEY_ID, CHEAP)?;
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        let error = keyfile::decode(&bad, Some("open sesame")).err();
        let told =
            matches!(error, Some(KeyfileError::Damaged { .. } | KeyfileError::Checksum { .. }));
        assert!(told, "bit {bit}: {error:?}");
    }
    for length in 0..bytes.len() {
        assert!(keyfile::label(&bytes[..length]).is_err(), "length {length}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(matches!(keyfile::label(&longer), Err(KeyfileError::Damaged { .. })));
    Ok(())
}

#[test]
fn a_file_cannot_ask_for_more_memory_than_the_bound() -> Outcome {
    for log_n in [0, MIN_LOG_N - 1, keyfile::MAX_LOG_N + 1, 63, 255] {
        let mut bytes = keyfile::encode(&MASTER, &KEY_ID, CHEAP)?.to_vec();
        bytes[13] = log_n;
        let end = bytes.len() - 32;
        let checksum = blake3::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(checksum.as_bytes());
        let error = keyfile::decode(&bytes, Some("open sesame")).err();
        assert!(
            matches!(error, Some(KeyfileError::Cost { actual }) if actual == log_n),
            "{error:?}"
        );
        let error =
            keyfile::encode(&MASTER, &KEY_ID, Protection::PassphraseWithCost("x", log_n)).err();
        assert!(matches!(error, Some(KeyfileError::Cost { .. })), "{error:?}");
    }
    let mut bytes = keyfile::encode(&MASTER, &KEY_ID, CHEAP)?.to_vec();
    bytes[14] = 255;
    let end = bytes.len() - 32;
    let checksum = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(checksum.as_bytes());
    assert!(matches!(keyfile::label(&bytes), Err(KeyfileError::Damaged { .. })));
    Ok(())
}

#[test]
fn plaintext_is_a_kind_of_its_own_and_needs_no_passphrase() -> Outcome {
    let bytes = keyfile::encode(&MASTER, &KEY_ID, Protection::Plaintext)?;
    assert_eq!(bytes[12], 2);
    assert_eq!(*keyfile::decode(&bytes, None)?.0, MASTER);
    let refused = keyfile::decode(&bytes, Some("x")).err();
    assert!(matches!(refused, Some(KeyfileError::NotEncrypted { .. })), "{refused:?}");
    let refused = keyfile::encode(&MASTER, &KEY_ID, Protection::Passphrase("")).err();
    assert!(matches!(refused, Some(KeyfileError::EmptyPassphrase)), "{refused:?}");
    // Turning the kind byte makes neither into the other, even under a fitting checksum.
    let mut turned = bytes.to_vec();
    turned[12] = 1;
    assert!(keyfile::label(&turned).is_err());
    Ok(())
}

#[test]
fn secrets_of_any_length_come_back_and_are_no_master_keys() -> Outcome {
    let secret: Vec<u8> = (0..1500u32).map(|at| at as u8).collect();
    for secret in [&secret[..], &secret[..32], &[]] {
        let bytes = keyfile::encode_secret(secret, Sort::Scheme, &KEY_ID, CHEAP)?;
        let (found, key_id) = keyfile::decode_secret(&bytes, Sort::Scheme, Some("open sesame"))?;
        assert_eq!((found.as_slice(), key_id), (secret, KEY_ID));
        let refused = keyfile::decode_secret(&bytes, Sort::Scheme, Some("Open sesame")).err();
        assert!(matches!(refused, Some(KeyfileError::WrongPassphrase { .. })), "{refused:?}");
        let refused = keyfile::decode(&bytes, Some("open sesame")).err();
        assert!(matches!(refused, Some(KeyfileError::OtherKey { sort: Sort::Scheme, .. })));
    }
    let master = keyfile::encode(&MASTER, &KEY_ID, Protection::Plaintext)?;
    let refused = keyfile::decode_secret(&master, Sort::Scheme, None).err();
    assert!(
        matches!(refused, Some(KeyfileError::OtherKey { sort: Sort::Master, .. })),
        "{refused:?}"
    );
    let long = vec![0; keyfile::MAX_SECRET + 1];
    assert!(matches!(
        keyfile::encode_secret(&long, Sort::Scheme, &KEY_ID, Protection::Plaintext),
        Err(KeyfileError::Damaged { .. })
    ));
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("paillier.key");
    keyfile::save_secret(&path, &long[1..], Sort::Person, &KEY_ID, Protection::Plaintext, false)?;
    assert_eq!(*keyfile::load_secret(&path, Sort::Person, None)?.0, long[1..]);
    Ok(())
}

#[test]
fn files_are_private_whole_and_not_overwritten_by_accident() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("my.key");
    keyfile::save(&path, &MASTER, &KEY_ID, CHEAP, false)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o7777, 0o600);
    }
    let before = fs::read(&path)?;
    let refused = keyfile::save(&path, &[1; 32], &KEY_ID, CHEAP, false).err();
    assert!(matches!(refused, Some(KeyfileError::Exists { .. })), "{refused:?}");
    assert_eq!(fs::read(&path)?, before);
    assert_eq!(*keyfile::load(&path, Some("open sesame"))?.0, MASTER);
    assert!(keyfile::load_label(&path)?.encrypted);
    keyfile::save(&path, &[1; 32], &KEY_ID, Protection::Plaintext, true)?;
    assert_eq!(*keyfile::load(&path, None)?.0, [1; 32]);
    assert_eq!(fs::read_dir(folder.path())?.count(), 1, "no temporary file stays");
    Ok(())
}

#[test]
fn wrong_paths_are_named_and_huge_files_are_not_read() -> Outcome {
    let folder = tempfile::tempdir()?;
    let absent = folder.path().join("absent");
    assert!(matches!(keyfile::load(&absent, None), Err(KeyfileError::NotFound { .. })));
    let nowhere = absent.join("my.key");
    let refused = keyfile::save(&nowhere, &MASTER, &KEY_ID, CHEAP, false).err();
    assert!(matches!(refused, Some(KeyfileError::Io { .. })), "{refused:?}");
    let other = folder.path().join("photo.jpg");
    fs::write(&other, vec![0xff; 1 << 20])?;
    assert!(matches!(keyfile::load(&other, None), Err(KeyfileError::Damaged { .. })));
    Ok(())
}

#[test]
fn messages_hold_neither_key_nor_passphrase() -> Outcome {
    let bytes = keyfile::encode(&MASTER, &KEY_ID, CHEAP)?;
    for error in [
        keyfile::decode(&bytes, Some("hunter2")).err(),
        keyfile::decode(&bytes[..50], Some("hunter2")).err(),
    ] {
        let shown =
            format!("{error:?} {}", error.as_ref().map(ToString::to_string).unwrap_or_default());
        assert!(!shown.contains("hunter2") && !shown.contains("example"), "{shown}");
    }
    Ok(())
}
