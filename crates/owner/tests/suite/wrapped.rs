//! Wrapped key files: the file key of a file opens that file and no other, and nothing in it can be exchanged.

use ciphervec_owner::Keys;
use ciphervec_owner::protect::aead::EnvelopeError;
use ciphervec_owner::protect::keyfile::{self, KeyfileError};
use ciphervec_owner::protect::wrapped::{FileKey, MAX_URI, MAX_WRAPPED, WrappedFile};
use std::error::Error;
use std::fs;
use std::path::Path;

type Outcome = Result<(), Box<dyn Error>>;

const MASTER: [u8; 32] = *b"an example of a master secret...";
const FILE_KEY: [u8; 32] = *b"a file key, which a KMS wraps...";
const URI: &str = "awskms://alias/ciphervec";
const WRAPPED: &[u8] = b"what a service made of the file key";

fn file_key() -> FileKey {
    FileKey::from_bytes(&FILE_KEY).unwrap()
}

fn wrapped() -> Result<WrappedFile, ciphervec_owner::Error> {
    Keys::from_master(MASTER).wrapped(URI, &file_key(), WRAPPED)
}

/// The bytes with their checksum made anew, as somebody would who exchanges a part.
fn sealed_again(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 32;
    let checksum = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(checksum.as_bytes());
    bytes
}

#[test]
fn a_key_comes_back_under_its_file_key_and_no_other() -> Outcome {
    let file = WrappedFile::parse(&wrapped()?.to_bytes())?;
    assert_eq!((file.uri(), file.wrapped()), (URI, WRAPPED));
    let keys = Keys::from_master(MASTER);
    assert!(Keys::from_wrapped(&file, &file_key())?.same(&keys));
    assert_eq!(file.key_id()[..8], keys.key_id().0);
    for secret in [&MASTER, &FILE_KEY] {
        assert!(!file.to_bytes().windows(8).any(|window| window == &secret[..8]));
    }
    let refused = Keys::from_wrapped(&file, &FileKey::generate()?).unwrap_err().to_string();
    assert!(refused.contains(URI) && !refused.contains("example"), "{refused}");
    assert_ne!(wrapped()?.to_bytes(), file.to_bytes(), "the nonce is fresh");
    Ok(())
}

#[test]
fn no_part_can_be_exchanged_without_the_file_key() -> Outcome {
    let bytes = wrapped()?.to_bytes();
    for bit in 0..(bytes.len() - 32) * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(WrappedFile::parse(&bad).is_err(), "bit {bit}");
        // The checksum is not what protects: with it made anew, the file does not parse or does not open.
        let opened = WrappedFile::parse(&sealed_again(bad)).ok().map(|file| file.open(&file_key()));
        assert!(!matches!(opened, Some(Ok(_))), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(WrappedFile::parse(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(WrappedFile::parse(&[&bytes[..], &[0]].concat()).is_err());
    Ok(())
}

#[test]
fn a_file_that_names_another_key_than_its_own_is_refused() -> Outcome {
    // Whoever has a file key can write anything under it; the id is checked against the key all the same.
    let other = [7; 16];
    let file = WrappedFile::seal(&MASTER, &other, URI, &file_key(), WRAPPED)?;
    assert_eq!(*file.open(&file_key())?, MASTER);
    let refused = Keys::from_wrapped(&file, &file_key()).unwrap_err().to_string();
    assert!(refused.contains("key id") && refused.contains("0707070707070707"), "{refused}");
    Ok(())
}

#[test]
fn it_is_told_from_other_key_files() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (plain, path) = (folder.path().join("plain"), folder.path().join("wrapped"));
    Keys::from_master(MASTER).save(&plain, None)?;
    assert!(WrappedFile::read(&plain)?.is_none());
    wrapped()?.save(&path, false)?;
    assert!(WrappedFile::read(&path)?.is_some());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    }
    for passphrase in [None, Some("open sesame")] {
        let refused = keyfile::load(&path, passphrase).err();
        assert!(matches!(&refused, Some(KeyfileError::Wrapped { .. })), "{refused:?}");
    }
    let before = fs::read(&path)?;
    assert!(matches!(wrapped()?.save(&path, false), Err(KeyfileError::Exists { .. })));
    assert_eq!(fs::read(&path)?, before);
    wrapped()?.save(&path, true)?;
    assert_ne!(fs::read(&path)?, before);
    assert_eq!(fs::read_dir(folder.path())?.count(), 2, "no draft is left");
    Ok(())
}

#[test]
fn limits_hold() {
    let keys = Keys::from_master(MASTER);
    let long = "x".repeat(MAX_URI + 1);
    for uri in ["", "age:\n", "age:\u{1b}[2J", &long] {
        assert!(keys.wrapped(uri, &file_key(), WRAPPED).is_err(), "{uri:?}");
    }
    assert!(keys.wrapped(&long[1..], &file_key(), &[1; MAX_WRAPPED]).is_ok());
    for wrapped in [&[][..], &[1; MAX_WRAPPED + 1]] {
        assert!(keys.wrapped(URI, &file_key(), wrapped).is_err());
    }
    assert!(FileKey::from_bytes(&[1; 31]).is_none() && FileKey::from_bytes(&[1; 33]).is_none());
}

#[test]
fn a_wrapping_key_of_this_machine_binds_its_context() -> Outcome {
    let wrapping = FileKey::generate()?;
    let sealed = file_key().wrap(&wrapping, b"context")?;
    assert_eq!(FileKey::unwrap(&sealed, &wrapping, b"context")?.expose(), &FILE_KEY);
    for (key, context) in [(&wrapping, &b"another"[..]), (&file_key(), b"context")] {
        let refused = FileKey::unwrap(&sealed, key, context).err();
        assert!(matches!(refused, Some(EnvelopeError::Unauthentic { .. })));
    }
    Ok(())
}

#[test]
fn the_stored_file_opens_and_writes_its_own_bytes() -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/v1/at-rest/wrapped.key");
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !path.exists() {
        fs::write(&path, wrapped()?.to_bytes())?;
    }
    let stored = fs::read(&path)?;
    let file = WrappedFile::parse(&stored)?;
    assert_eq!((file.to_bytes(), file.uri()), (stored, URI));
    assert_eq!(*file.open(&file_key())?, MASTER);
    Ok(())
}
